"""How long a host waits: for the first answer of a new worker, and for the end of what it cancels."""

from itertools import pairwise
from statistics import median, quantiles
from time import perf_counter
from typing import Final, NamedTuple

from lmwire_protocol import Cancel, Hello

from .peer import Worker
from .workload import greedy

_FIRST: Final = 3
"""Tokens that every stream has made when it is cancelled."""


def hello_ms() -> float:
    """From the spawn of a worker to its answer."""
    started = perf_counter()
    with Worker() as worker:
        worker.ask(Hello())
        return (perf_counter() - started) * 1e3


class Cancels(NamedTuple):
    """Milliseconds of many cancels."""

    p99: float
    """From the write of a cancel to the terminal of its request."""
    step: float
    """Between two tokens of the same streams, the median."""


def cancel_ms(worker: Worker, count: int, tokens: int) -> Cancels:
    """Cancels `count` streams in mid-decode, one after another, each at another of its tokens."""
    waits, gaps = [], []
    for index in range(count):
        worker.send({"stream": greedy(1, _FIRST + tokens)[0]})
        events, seen, made = worker.events(2), [], 0
        while made < _FIRST + index % max(1, tokens // 4):
            if (event := next(events))["event"] == "token":
                seen.append(perf_counter())
                made += len(event["token_ids"])  # of a busy machine's events one can hold several
        cancelled = perf_counter()
        worker.send({"cancel": Cancel(target="stream")})
        for event in events:
            if event["event"] == "done" and event["id"] == "stream":
                waits.append((perf_counter() - cancelled) * 1e3)
        gaps += [(later - earlier) * 1e3 for earlier, later in pairwise(seen)]
    return Cancels(p99=quantiles(waits, n=100, method="inclusive")[98], step=median(gaps))
