"""Play transcripts against a worker."""

from collections.abc import Callable, Sequence

from .. import baseline
from ..report import CaseResult
from ..violation import Violation
from .process import WorkerProcess
from .replay import replay
from .transcript import Transcript, read_all

_HELLO = b'{"id":"features","cmd":"hello"}\n'


def check_worker(
    command: Sequence[str],
    *,
    model: str = "mock",
    only: Sequence[str] = (),
    known: baseline.Baseline | None = None,
    seconds: float = 60.0,
    on_result: Callable[[CaseResult], None] = lambda case: None,
) -> list[CaseResult]:
    """Play the transcripts against a worker, each with one process or more.

    Args:
        command: Starts the worker.
        model: A path that the worker can load.
        only: Names of rules or transcripts to play instead of all.
        known: Known failures.
        seconds: Maximum seconds of any wait.
        on_result: Called with each result, before the baseline applies.

    Raises:
        ValueError: `only` names something that does not exist.
        OSError: The command cannot be started.
    """
    transcripts = read_all()
    chosen = _chosen(transcripts, only)
    served = listed_features(command, seconds) if any(transcript.needs for transcript in chosen) else frozenset[str]()
    cases: list[CaseResult] = []
    for transcript in chosen:
        cases.append(skipped_result(transcript, served) or replay(transcript, command, model, seconds))
        on_result(cases[-1])
    return baseline.apply(known or {}, cases, {transcript.name for transcript in transcripts})


def listed_features(command: Sequence[str], seconds: float) -> frozenset[str]:
    """Return the features in a worker's reply to `hello`; none if it does not reply, which other transcripts report.

    Args:
        command: Starts the worker.
        seconds: Maximum seconds of any wait.

    Raises:
        OSError: The command cannot be started.
    """
    process = WorkerProcess(command, seconds)
    try:
        process.write(_HELLO)
        answers = process.wait(lambda: process.session.terminals["features"] or None, ("#hello",), "the reply to hello")
        return frozenset(answers[0]["features"] if answers[0]["event"] == "done" else ())
    except Violation:
        return frozenset()
    finally:
        process.kill()


def skipped_result(transcript: Transcript, served: frozenset[str]) -> CaseResult | None:
    """Return the result of a transcript that must be skipped because it needs other features, or None.

    Args:
        transcript: The transcript.
        served: The features that the worker lists.
    """
    if not (lacking := transcript.needs - served):
        return None
    needs, lacks = ", ".join(sorted(transcript.needs)), ", ".join(sorted(lacking))
    return CaseResult(
        transcript.name, transcript.rules, "skip", f"the features {needs}", f"the worker does not list {lacks}"
    )


def _chosen(transcripts: list[Transcript], only: Sequence[str]) -> list[Transcript]:
    unknown = [name for name in only if not any(name in (item.name, *item.rules) for item in transcripts)]
    if unknown:
        raise ValueError(f"no transcript is named {unknown[0]!r} or proves such a rule")
    return [item for item in transcripts if not only or any(name in (item.name, *item.rules) for name in only)]
