"""How fast events travel when the engine costs nothing: from the mock worker into the Python client."""

import asyncio
import json
from time import perf_counter
from typing import NamedTuple

import lmwire
from lmwire_protocol import encode_event
from lmwire_protocol.events import Token

from .peer import WORKER

_STREAMS = 32
_PROMPT = "one two three four "


class EventRates(NamedTuple):
    """Events a second, an event being one token of one stream, as the engine makes them."""

    client: float
    """To the `for` loop of a host. What the worker merges on the way still counts as the events that it was."""
    loop: float
    """json.loads over such events, one a line, which are in memory already."""


def event_rates(events: int) -> EventRates:
    """Measures both over about `events` events."""
    return EventRates(loop=_loop_rate(events), client=asyncio.run(_client_rate(events // _STREAMS)))


def _loop_rate(events: int) -> float:
    words = [f"{word} " for word in _PROMPT.split()]
    places = [index % len(words) for index in range(events)]
    lines = [encode_event(Token(id="1", token=words[place], token_ids=[place])) for place in places]
    started = perf_counter()
    for line in lines:
        json.loads(line)
    return events / (perf_counter() - started)


async def _client_rate(tokens: int) -> float:
    async def stream() -> int:
        async with worker.generate(_PROMPT, max_tokens=tokens) as pieces:
            return sum([len(piece.token_ids) async for piece in pieces])

    async with lmwire.AsyncWorker([*WORKER, "--mock"]) as worker:
        await worker.load("mock")
        started = perf_counter()
        counts = await asyncio.gather(*(stream() for _ in range(_STREAMS)))
        return sum(counts) / (perf_counter() - started)
