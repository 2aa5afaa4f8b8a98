"""Times that a host waits: for the reply of a new worker to hello, and for the end of a cancelled request."""

from itertools import pairwise
from statistics import median, quantiles
from time import perf_counter
from typing import Final, NamedTuple

from lmwire_protocol import Cancel, Hello

from ..programs.processes import WorkerProcess
from ..workload import greedy

_TOKENS_BEFORE_CANCEL: Final = 3
"""Lowest number of tokens that a stream has generated when it is cancelled."""


def hello_ms() -> float:
    """Return the time from the spawn of a worker to its reply to hello, in milliseconds."""
    started = perf_counter()
    with WorkerProcess() as worker:
        worker.ask(Hello())
        return (perf_counter() - started) * 1e3


class Cancels(NamedTuple):
    """Times of many cancels, in milliseconds."""

    p99: float
    """99th percentile from the write of a cancel to the terminal of its request."""
    step: float
    """Median between two tokens of the same streams."""


def cancel_ms(worker: WorkerProcess, count: int, tokens: int) -> Cancels:
    """Cancel streams while they decode, one after another, each at another token.

    Args:
        worker: A worker with its model loaded.
        count: Number of streams.
        tokens: Length of each stream, in tokens.
    """
    waits: list[float] = []
    gaps: list[float] = []
    for index in range(count):
        worker.send({"stream": greedy(1, _TOKENS_BEFORE_CANCEL + tokens)[0]})
        events, generated = worker.events(2), 0
        seen: list[float] = []
        while generated < _TOKENS_BEFORE_CANCEL + index % max(1, tokens // 4):
            if (event := next(events))["event"] == "token":
                seen.append(perf_counter())
                generated += len(event["token_ids"])  # on a busy machine an event may hold several
        cancelled = perf_counter()
        worker.send({"cancel": Cancel(target="stream")})
        for event in events:
            if event["event"] == "done" and event["id"] == "stream":
                waits.append((perf_counter() - cancelled) * 1e3)
        gaps += [(later - earlier) * 1e3 for earlier, later in pairwise(seen)]
    return Cancels(p99=quantiles(waits, n=100, method="inclusive")[98], step=median(gaps))
