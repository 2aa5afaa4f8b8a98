"""How fast events travel when the engine costs nothing: from the mock worker into the Python client."""

import asyncio
import json
from time import perf_counter
from typing import NamedTuple

import lmwire
from lmwire_protocol import Generate, Load

from .peer import WORKER, Worker

_STREAMS = 32
_PROMPT = "one two three four "


class EventRates(NamedTuple):
    """Events a second."""

    client: float
    """One token an event, out of as many streams as a batch has, to the host's `for` loop."""
    loop: float
    """json.loads over the same lines, which are in memory already."""


def event_rates(events: int) -> EventRates:
    """Measures both over about `events` events."""
    tokens = -(-events // _STREAMS)
    return EventRates(client=asyncio.run(_client_rate(tokens)), loop=_loop_rate(tokens))


async def _client_rate(tokens: int) -> float:
    async def stream() -> int:
        async with worker.generate(_PROMPT, max_tokens=tokens) as pieces:
            return sum([len(piece.token_ids) async for piece in pieces])

    async with lmwire.AsyncWorker([*WORKER, "--mock"]) as worker:
        await worker.load("mock")
        started = perf_counter()
        counts = await asyncio.gather(*(stream() for _ in range(_STREAMS)))
        return sum(counts) / (perf_counter() - started)


def _loop_rate(tokens: int) -> float:
    with Worker("--mock") as worker:
        worker.ask(Load(path="mock"))
        worker.send({str(index): Generate(prompt=_PROMPT, max_tokens=tokens) for index in range(_STREAMS)})
        lines = [line for line in worker.lines(_STREAMS) if b'"event":"token"' in line]
    started = perf_counter()
    for line in lines:
        json.loads(line)
    return len(lines) / (perf_counter() - started)
