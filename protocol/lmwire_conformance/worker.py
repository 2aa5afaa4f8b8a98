"""Proves a worker right: every transcript, played against it."""

from collections.abc import Callable, Sequence

from . import baseline
from .replay import replay
from .report import Case
from .transcript import Transcript, read_all


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
    cases: list[Case] = []
    for transcript in _chosen(transcripts, only):
        cases.append(replay(transcript, command, model, seconds))
        tell(cases[-1])
    return baseline.apply(known or {}, cases, {transcript.name for transcript in transcripts})


def _chosen(transcripts: list[Transcript], only: Sequence[str]) -> list[Transcript]:
    unknown = [name for name in only if not any(name in (item.name, *item.rules) for item in transcripts)]
    if unknown:
        raise ValueError(f"no transcript is named {unknown[0]!r} or proves such a rule")
    return [item for item in transcripts if not only or any(name in (item.name, *item.rules) for name in only)]
