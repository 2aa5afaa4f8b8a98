"""Speed of events from a worker whose engine costs nothing to the Python client."""

import asyncio
import json
from time import perf_counter
from typing import NamedTuple

import lmwire
from lmwire_protocol import encode_event
from lmwire_protocol.events import Token

from ....child_process import python_command
from ..programs import free_engine
from ..programs.free_engine import WORDS

_STREAMS = 32


class EventRates(NamedTuple):
    """Events a second. An event is one token of one stream, before any merging."""

    client: float
    """Rate at the host's `for` loop. Merged events count as the events that they contain."""
    loop: float
    """Rate of json.loads over the same events, one a line, from memory."""


def event_rates(events: int) -> EventRates:
    """Measure both rates over about the given number of events."""
    return EventRates(loop=_loop_rate(events), client=asyncio.run(_client_rate(events // _STREAMS)))


def _loop_rate(events: int) -> float:
    places = [index % len(WORDS) for index in range(events)]
    lines = [encode_event(Token(id="1", token=WORDS[place], token_ids=[place])) for place in places]
    started = perf_counter()
    for line in lines:
        json.loads(line)
    return events / (perf_counter() - started)


async def _client_rate(tokens: int) -> float:
    async def count_tokens() -> int:
        async with worker.generate("".join(WORDS), max_tokens=tokens) as stream:
            return sum([len(delta.token_ids) async for delta in stream])

    async with lmwire.AsyncWorker(python_command(free_engine.__name__)) as worker:
        await worker.load("mock")
        started = perf_counter()
        counts = await asyncio.gather(*(count_tokens() for _ in range(_STREAMS)))
        return sum(counts) / (perf_counter() - started)
