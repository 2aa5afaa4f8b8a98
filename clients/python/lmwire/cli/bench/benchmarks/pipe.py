"""`lmwire bench pipe`: cost of the worker and its pipe, as ratios within one run."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

from lmwire_protocol import Load

from .. import workload
from ..pairing import measure_pairs, speed_ratio
from ..programs.processes import BenchmarkProcess, LibraryProcess, WorkerProcess
from ..results import Result
from .event_path import event_rates
from .latency import cancel_ms, hello_ms

LONE_PROMPT_TOKENS: Final = 1024
CLOCK_TICK_S: Final = 0.01
"""Unit in which systems count processor time, in seconds. A tiny model needs less."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure the worker against mlx_lm in one process, its waits, and its events without an engine."""
    with tempfile.TemporaryDirectory() as copy:
        model = workload.copy_without_eos(folder, Path(copy))
        with LibraryProcess(model) as library, WorkerProcess() as worker:
            worker.ask(Load(path=str(model)))
            yield _against_library(library, worker, 1, tokens, rounds, target=0.97)
            yield _against_library(library, worker, 8, tokens, rounds, target=0.95)
            yield _against_library(library, worker, 32, tokens, rounds, target=0.95)
            yield _against_library(library, worker, 8, tokens, rounds, target=0.95, step=workload.LENGTH_STEP)
            yield _lone_prompt(library, worker, rounds)
            yield _mixed_samplers(worker, 32, tokens, rounds)
            cancels = cancel_ms(worker, 40 * rounds, tokens)
    yield _hello(rounds)
    yield Result(
        "cancel to terminal while decoding, 99th percentile",
        cancels.p99,
        "ms",
        target=cancels.step + 5,
        detail=f"a step takes {cancels.step:.2f} ms",
    )
    yield _event_path(rounds)


def _against_library(
    library: LibraryProcess, worker: WorkerProcess, streams: int, tokens: int, rounds: int, target: float, step: int = 0
) -> Result:
    requests = workload.greedy(streams, tokens, step)
    pairs = measure_pairs(rounds, lambda: library.rate(streams, tokens, step), lambda: worker.rate(requests))
    several = f"{streams} streams{' of different lengths' if step else ''}, against BatchGenerator"
    name = "1 stream, against stream_generate" if streams == 1 else several
    return speed_ratio(name, pairs, target, "tok/s")


def _lone_prompt(library: LibraryProcess, worker: WorkerProcess, rounds: int) -> Result:
    """Return the ratio of the processor time, which other programs on the machine change less than the time."""
    request = workload.long_prompt(LONE_PROMPT_TOKENS, tokens=1)

    def rate(process: BenchmarkProcess, read: Callable[[], object]) -> float:
        before = process.processor_seconds()
        read()
        return LONE_PROMPT_TOKENS / max(process.processor_seconds() - before, CLOCK_TICK_S)

    pairs = measure_pairs(
        rounds,
        lambda: rate(library, lambda: library.read_prompt(LONE_PROMPT_TOKENS)),
        lambda: rate(worker, lambda: worker.ask(request)),
    )
    name = f"prompt of {LONE_PROMPT_TOKENS:,} tokens alone, processor time, against stream_generate"
    return speed_ratio(name, pairs, 0.95, "tok/s")


def _mixed_samplers(worker: WorkerProcess, streams: int, tokens: int, rounds: int) -> Result:
    greedy, mixed = workload.greedy(streams, tokens), workload.mixed_samplers(streams, tokens)
    pairs = measure_pairs(rounds, lambda: worker.rate(greedy), lambda: worker.rate(mixed))
    return speed_ratio(f"{streams} different samplers and seeds, against greedy", pairs, 0.9, "tok/s")


def _hello(rounds: int) -> Result:
    times = [hello_ms() for _ in range(4 * rounds + 1)]
    return Result(
        "spawn to hello answered, median",
        median(times),
        "ms",
        target=60,
        detail=f"{len(times)} spawns of `lmwire worker`",
    )


def _event_path(rounds: int) -> Result:
    pairs = [(rates.loop, rates.client) for rates in (event_rates(200_000) for _ in range(rounds))]
    return speed_ratio("engine without cost to Python client, against json.loads", pairs, 1.0, "events/s")
