"""`lmwire bench pipe`: what the worker and its pipe cost, as ratios within one run."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from lmwire_protocol import Load

from . import workload
from .event_path import event_rates
from .figures import Figure
from .latency import cancel_ms, hello_ms
from .peer import InProcess, Worker
from .turns import in_turns, ratio


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as copy:
        model = workload.without_end(folder, Path(copy))
        with InProcess(model) as library, Worker() as worker:
            worker.ask(Load(path=str(model)))
            yield _against_library(library, worker, 1, tokens, rounds, target=0.97)
            yield _against_library(library, worker, 8, tokens, rounds, target=0.95)
            yield _against_library(library, worker, 32, tokens, rounds, target=0.95)
            yield _mixed_samplers(worker, 32, tokens, rounds)
            cancels = cancel_ms(worker, 40 * rounds, tokens)
    yield _hello(rounds)
    yield Figure(
        "cancel to terminal while decoding, 99th percentile",
        cancels.p99,
        "ms",
        target=cancels.step + 5,
        detail=f"a step takes {cancels.step:.2f} ms",
    )
    yield _event_path(rounds)


def _against_library(
    library: InProcess, worker: Worker, streams: int, tokens: int, rounds: int, target: float
) -> Figure:
    requests = workload.greedy(streams, tokens)
    pairs = in_turns(rounds, lambda: library.rate(streams, tokens), lambda: worker.rate(requests))
    name = "1 stream, against stream_generate" if streams == 1 else f"{streams} streams, against BatchGenerator"
    return ratio(name, pairs, target, "tok/s")


def _mixed_samplers(worker: Worker, streams: int, tokens: int, rounds: int) -> Figure:
    greedy, mixed = workload.greedy(streams, tokens), workload.mixed(streams, tokens)
    pairs = in_turns(rounds, lambda: worker.rate(greedy), lambda: worker.rate(mixed))
    return ratio(f"{streams} different samplers and seeds, against greedy", pairs, 0.9, "tok/s")


def _hello(rounds: int) -> Figure:
    times = [hello_ms() for _ in range(4 * rounds + 1)]
    return Figure(
        "spawn to hello answered, median",
        median(times),
        "ms",
        target=60,
        detail=f"{len(times)} spawns of `lmwire worker`",
    )


def _event_path(rounds: int) -> Figure:
    pairs = [(rates.loop, rates.client) for rates in (event_rates(200_000) for _ in range(rounds))]
    return ratio("mock worker to Python client, against json.loads", pairs, 1.0, "events/s")
