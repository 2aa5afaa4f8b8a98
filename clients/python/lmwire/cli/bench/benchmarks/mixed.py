"""`lmwire bench mixed`: cost of long prompts and long answers for the short streams beside them."""

import tempfile
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, Final

from lmwire_protocol import Cancel, Command, Load

from .. import workload
from ..pairing import latency_ratio, measure_pairs, speed_ratio
from ..programs.processes import WorkerProcess
from ..results import Result

_LONG_ROW: Final = 8192
_LONG_PROMPT: Final = 16384
_SHORT_STREAMS: Final = 31
_RUNNING_STREAMS: Final = 8
_ENDLESS_TOKENS: Final = 1_000_000
_USUAL_GAPS: Final = 100
_MAX_GAP_FACTOR: Final = 6
"""Longest gap between tokens beside a long prompt, in gaps without it."""
_UNNOTICEABLE_GAP_S: Final = 0.025
"""A gap up to this passes in any case: no reader notices it, however fast the model is."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure a copy of the model whose context holds the long prompts."""
    with tempfile.TemporaryDirectory() as copy:
        model = workload.copy_without_eos(folder, Path(copy), context=_ENDLESS_TOKENS)
        with WorkerProcess() as worker:
            worker.ask(Load(path=str(model)))
            yield _long_row(worker, tokens, rounds)
            yield from _long_prompt(worker, rounds)


def _long_row(worker: WorkerProcess, tokens: int, rounds: int) -> Result:
    """Measure short streams, alone and beside a long one."""
    short = workload.greedy(_SHORT_STREAMS, tokens)
    long = workload.long_prompt(_LONG_ROW, _ENDLESS_TOKENS)

    def beside() -> float:
        worker.send({"long": long})
        events = worker.events(_SHORT_STREAMS + 2)
        _await_tokens(events, 1)
        started = perf_counter()
        worker.send({str(index): request for index, request in enumerate(short)})
        generated = sum(
            event["usage"]["completion_tokens"] for event in islice(filter(_is_done, events), _SHORT_STREAMS)
        )
        seconds = perf_counter() - started
        _cancel(worker, events, "long")
        return generated / seconds

    pairs = measure_pairs(rounds, lambda: worker.rate(short), beside)
    return speed_ratio(
        f"{_SHORT_STREAMS} short streams beside one of {_LONG_ROW} tokens, against alone", pairs, 0.5, "tok/s"
    )


def _long_prompt(worker: WorkerProcess, rounds: int) -> Iterator[Result]:
    """Measure a long prompt, alone and beside running streams, and the gaps between their tokens."""
    usual: list[list[float]] = []  # one list for each turn
    gaps: list[list[float]] = []
    alone = workload.long_prompt(_LONG_PROMPT, 1)
    running: dict[str, Command] = {
        str(index): request for index, request in enumerate(workload.greedy(_RUNNING_STREAMS, _ENDLESS_TOKENS))
    }

    def beside() -> float:
        worker.send(running)
        events = worker.events(2 * _RUNNING_STREAMS + 1)
        _await_tokens(events, _RUNNING_STREAMS * 10)
        usual.append(_gaps(islice(filter(_is_first_stream_token, events), _USUAL_GAPS)))
        worker.send({"long": alone})
        started = perf_counter()
        gaps.append(_gaps(filter(_is_first_stream_token, _until_done(events))))
        seconds = perf_counter() - started
        _cancel(worker, events, *running)
        return 1 / seconds

    pairs = measure_pairs(rounds, lambda: worker.rate([alone]), beside)
    step = median(chain(*usual[1:]))  # without the warm-up
    yield Result(
        f"token gap of {_RUNNING_STREAMS} streams "
        f"while a prompt of {_LONG_PROMPT} tokens is processed, 99th percentile",
        1e3 * quantiles(chain(*gaps[1:]), n=100, method="inclusive")[98],
        "ms",
        target=1e3 * max(_MAX_GAP_FACTOR * step, _UNNOTICEABLE_GAP_S),
        detail=f"{1e3 * step:.2f} ms without it",
    )
    yield latency_ratio(f"first token of that prompt beside {_RUNNING_STREAMS} streams, against alone", pairs, 0.8)


def _gaps(events: Iterator[dict[str, Any]]) -> list[float]:
    """Return the seconds from each event to the next."""
    return [later - earlier for earlier, later in pairwise([perf_counter() for _ in events])]


def _await_tokens(events: Iterator[dict[str, Any]], count: int) -> None:
    for _ in islice((event for event in events if event["event"] == "token"), count):
        pass


def _until_done(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        if _is_done(event):
            return
        yield event


def _cancel(worker: WorkerProcess, events: Iterator[dict[str, Any]], *ids: str) -> None:
    worker.send({f"cancel {id}": Cancel(target=id) for id in ids})
    for _ in events:
        pass


def _is_done(event: dict[str, Any]) -> bool:
    return event["event"] == "done"


def _is_first_stream_token(event: dict[str, Any]) -> bool:
    return event["event"] == "token" and event["id"] == "0"
