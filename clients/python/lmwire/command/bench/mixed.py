"""`lmwire bench mixed`: what long prompts and long answers cost the short ones beside them."""

import tempfile
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, Final

from lmwire_protocol import Cancel, Command, Load

from . import workload
from .figures import Figure
from .peer import Worker
from .turns import in_turns, ratio, sooner

_LONG_ROW: Final = 8192
_LONG_PROMPT: Final = 16384
_SHORT: Final = 31
_RUNNING: Final = 8
_ENDLESS: Final = 1_000_000
_USUAL_GAPS: Final = 100
_STEPS: Final = 6
"""As long may a gap be beside a long prompt, in gaps without it,"""
_UNNOTICED_S: Final = 0.025
"""or so long that nobody notices: a step of a very fast model is not worth more to anyone who reads."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as copy:
        model = workload.without_end(folder, Path(copy), context=_ENDLESS)
        with Worker() as worker:
            worker.ask(Load(path=str(model)))
            yield _long_row(worker, tokens, rounds)
            yield from _long_prompt(worker, rounds)


def _long_row(worker: Worker, tokens: int, rounds: int) -> Figure:
    """Short streams, alone and beside a long one that runs."""
    short = workload.greedy(_SHORT, tokens)
    long = workload.long(_LONG_ROW, _ENDLESS)

    def beside() -> float:
        worker.send({"long": long})
        events = worker.events(_SHORT + 2)
        _await_tokens(events, 1)
        started = perf_counter()
        worker.send({str(index): request for index, request in enumerate(short)})
        made = sum(event["usage"]["completion_tokens"] for event in islice(filter(_is_done, events), _SHORT))
        seconds = perf_counter() - started
        _cancel(worker, events, "long")
        return made / seconds

    pairs = in_turns(rounds, lambda: worker.rate(short), beside)
    return ratio(f"{_SHORT} short streams beside one of {_LONG_ROW} tokens, against alone", pairs, 0.5, "tok/s")


def _long_prompt(worker: Worker, rounds: int) -> Iterator[Figure]:
    """A long prompt, alone and beside streams that run, and what these notice of it."""
    usual: list[list[float]] = []  # of each turn
    gaps: list[list[float]] = []
    alone = workload.long(_LONG_PROMPT, 1)
    running: dict[str, Command] = {
        str(index): request for index, request in enumerate(workload.greedy(_RUNNING, _ENDLESS))
    }

    def beside() -> float:
        worker.send(running)
        events = worker.events(2 * _RUNNING + 1)
        _await_tokens(events, _RUNNING * 10)
        usual.append(_gaps(islice(filter(_is_of_the_first, events), _USUAL_GAPS)))
        worker.send({"long": alone})
        started = perf_counter()
        gaps.append(_gaps(filter(_is_of_the_first, _until_done(events))))
        seconds = perf_counter() - started
        _cancel(worker, events, *running)
        return 1 / seconds

    pairs = in_turns(rounds, lambda: worker.rate([alone]), beside)
    step = median(chain(*usual[1:]))  # without those of the turn that warms up
    yield Figure(
        f"token gap of {_RUNNING} streams while a prompt of {_LONG_PROMPT} tokens is processed, 99th percentile",
        1e3 * quantiles(chain(*gaps[1:]), n=100, method="inclusive")[98],
        "ms",
        target=1e3 * max(_STEPS * step, _UNNOTICED_S),
        detail=f"{1e3 * step:.2f} ms without it",
    )
    yield sooner(f"first token of that prompt beside {_RUNNING} streams, against alone", pairs, 0.8)


def _gaps(events: Iterator[dict[str, Any]]) -> list[float]:
    """Seconds from each of the events to the next."""
    return [later - earlier for earlier, later in pairwise([perf_counter() for _ in events])]


def _await_tokens(events: Iterator[dict[str, Any]], count: int) -> None:
    for _ in islice((event for event in events if event["event"] == "token"), count):
        pass


def _until_done(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        if _is_done(event):
            return
        yield event


def _cancel(worker: Worker, events: Iterator[dict[str, Any]], *ids: str) -> None:
    worker.send({f"cancel {id}": Cancel(target=id) for id in ids})
    for _ in events:
        pass


def _is_done(event: dict[str, Any]) -> bool:
    return event["event"] == "done"


def _is_of_the_first(event: dict[str, Any]) -> bool:
    return event["event"] == "token" and event["id"] == "0"
