"""Proves a worker right: every transcript, played against it."""

from collections.abc import Callable, Sequence

from . import baseline
from .peer import Peer
from .replay import replay
from .report import Case
from .transcript import Transcript, read_all
from .violation import Violation

_HELLO = b'{"id":"features","cmd":"hello"}\n'


def check_worker(
    command: Sequence[str],
    *,
    model: str = "mock",
    only: Sequence[str] = (),
    known: baseline.Baseline | None = None,
    seconds: float = 60.0,
    tell: Callable[[Case], None] = lambda case: None,
) -> list[Case]:
    """Plays the transcripts against a worker, one process or more for each.

    Args:
        command: what starts the worker.
        model: a path that the worker can load.
        only: names of rules or of transcripts, instead of all.
        known: failures that are known.
        seconds: how long any wait may take.
        tell: hears of each case as it ends, before the baseline judges it.

    Raises:
        ValueError: `only` names something that does not exist.
        OSError: the command cannot be started.
    """
    transcripts = read_all()
    chosen = _chosen(transcripts, only)
    served = features(command, seconds) if any(transcript.needs for transcript in chosen) else frozenset()
    cases: list[Case] = []
    for transcript in chosen:
        cases.append(missing(transcript, served) or replay(transcript, command, model, seconds))
        tell(cases[-1])
    return baseline.apply(known or {}, cases, {transcript.name for transcript in transcripts})


def features(command: Sequence[str], seconds: float) -> frozenset[str]:
    """What a worker lists in its reply to `hello`; nothing when it has no reply, of which other transcripts tell.

    Raises:
        OSError: the command cannot be started.
    """
    peer = Peer(command, seconds)
    try:
        peer.write(_HELLO)
        answers = peer.wait(lambda: peer.session.terminals["features"] or None, ("#hello",), "the reply to hello")
        return frozenset(answers[0]["features"] if answers[0]["event"] == "done" else ())
    except Violation:
        return frozenset()
    finally:
        peer.kill()


def missing(transcript: Transcript, served: frozenset[str]) -> Case | None:
    """The skipped case of a transcript that needs features which are not served; None when it can be played."""
    if not (lacking := transcript.needs - served):
        return None
    needs, lacks = ", ".join(sorted(transcript.needs)), ", ".join(sorted(lacking))
    return Case(transcript.name, transcript.rules, "skip", f"the features {needs}", f"the worker does not list {lacks}")


def _chosen(transcripts: list[Transcript], only: Sequence[str]) -> list[Transcript]:
    unknown = [name for name in only if not any(name in (item.name, *item.rules) for item in transcripts)]
    if unknown:
        raise ValueError(f"no transcript is named {unknown[0]!r} or proves such a rule")
    return [item for item in transcripts if not only or any(name in (item.name, *item.rules) for name in only)]
