"""`lmwire bench pipe`: cost of the worker and its pipe, as ratios within one run."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Final

import lmwire
from lmwire_protocol import Cancel, Hello, Load, encode_event
from lmwire_protocol.events import Token

from ....child_process import python_command
from .. import workload
from ..pairing import measure_pairs, speed_ratio
from ..programs import free_engine
from ..programs.free_engine import WORDS
from ..programs.processes import BenchmarkProcess, LibraryProcess, WorkerProcess
from ..results import Result

LONE_PROMPT_TOKENS: Final = 1024
_ONE_STREAM_FACTOR: Final = 4
"""Rounds of one stream for one round that was asked for. It is quick, and a busy machine delays it most."""
_TOKENS_BEFORE_CANCEL: Final = 3
"""Lowest number of tokens that a stream has generated when it is cancelled."""
_EVENTS: Final = 200_000
_STREAMS: Final = 32
"""Streams that share these events."""
_DEVICES_MS: Final = (1, 5, 20)
"""Milliseconds that a step takes on the simulated devices: those of a tiny, a small and a large model."""
CLOCK_TICK_S: Final = 0.01
"""Unit in which systems count processor time, in seconds. A tiny model needs less."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure the worker against mlx_lm in one process, its waits, and its events without an engine."""
    with tempfile.TemporaryDirectory() as copy:
        model = workload.copy_without_eos(folder, Path(copy))
        with LibraryProcess(model) as library, WorkerProcess() as worker:
            worker.ask(Load(path=str(model)))
            yield _against_library(library, worker, 1, tokens, rounds * _ONE_STREAM_FACTOR, target=0.97)
            yield _against_library(library, worker, 8, tokens, rounds, target=0.95)
            yield _against_library(library, worker, 32, tokens, rounds, target=0.95)
            yield _against_library(library, worker, 8, tokens, rounds, target=0.95, step=workload.LENGTH_STEP)
            yield _lone_prompt(library, worker, rounds)
            yield _mixed_samplers(worker, 32, tokens, rounds)
            cancel = _cancel(worker, 40 * rounds, tokens)
    yield _hello(rounds)
    yield cancel
    yield _event_path(rounds)
    for step_ms in _DEVICES_MS:
        yield from _beside_device(step_ms, tokens, rounds)


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


def _cancel(worker: WorkerProcess, count: int, tokens: int) -> Result:
    """Cancel streams while they decode, one after another, each at another token."""
    waits: list[float] = []
    gaps: list[float] = []
    for index in range(count):
        worker.send({"stream": workload.greedy(1, _TOKENS_BEFORE_CANCEL + tokens)[0]})
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
    p99, step = quantiles(waits, n=100, method="inclusive")[98], median(gaps)
    name = "cancel to terminal while decoding, 99th percentile"
    return Result(name, p99, "ms", target=step + 5, detail=f"a step takes {step:.2f} ms")


def _hello(rounds: int) -> Result:
    times = [_hello_ms() for _ in range(4 * rounds + 1)]
    return Result(
        "spawn to hello answered, median",
        median(times),
        "ms",
        target=60,
        detail=f"{len(times)} spawns of `lmwire worker`",
    )


def _hello_ms() -> float:
    started = perf_counter()
    with WorkerProcess() as worker:
        worker.ask(Hello())
        return (perf_counter() - started) * 1e3


def _event_path(rounds: int) -> Result:
    """Return the rate of events from an engine that costs nothing, against json.loads of the same from memory.

    An event is one token of one stream. Merged ones count as the events that they contain.
    """
    pairs = [(_loop_rate(), asyncio.run(_client_rate())) for _ in range(rounds)]
    return speed_ratio("engine without cost to Python client, against json.loads", pairs, 1.0, "events/s")


def _loop_rate() -> float:
    places = [index % len(WORDS) for index in range(_EVENTS)]
    lines = [encode_event(Token(id="1", token=WORDS[place], token_ids=[place])) for place in places]
    started = perf_counter()
    for line in lines:
        json.loads(line)
    return _EVENTS / (perf_counter() - started)


async def _client_rate() -> float:
    async def count_tokens() -> int:
        async with worker.generate("".join(WORDS), max_tokens=_EVENTS // _STREAMS) as stream:
            return sum([len(delta.token_ids) async for delta in stream])

    async with lmwire.AsyncWorker(python_command(free_engine.__name__)) as worker:
        await worker.load("mock")
        started = perf_counter()
        counts = await asyncio.gather(*(count_tokens() for _ in range(_STREAMS)))
        return sum(counts) / (perf_counter() - started)


def _beside_device(step_ms: int, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure whether what the process does beside a step keeps a device waiting."""
    with WorkerProcess(str(step_ms), command=python_command(free_engine.__name__)) as worker:
        worker.ask(Load(path="mock"))
        for streams, name in ((1, "1 stream"), (_STREAMS, f"{_STREAMS} streams")):
            alone = 1000 * streams / step_ms
            pairs = [(alone, worker.rate(workload.greedy(streams, tokens))) for _ in range(rounds)]
            yield speed_ratio(f"{name} beside a device of {step_ms} ms a step, against it alone", pairs, 0.95, "tok/s")
