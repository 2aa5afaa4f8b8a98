"""`lmwire bench http`: what the HTTP server costs, and what the model libraries' own servers make of the same model."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from lmwire_protocol import Load

from . import workload
from .figures import Figure
from .http_servers import Server, installed_peers, lmwire_server, peer_server
from .peer import Worker
from .turns import Pairs, ratio, sooner

STREAMS: Final = (1, 8, 32)
PIPE: Final = "the pipe"
OURS: Final = "lmwire"


class Turn(NamedTuple):
    """One turn of all that is compared, at so many streams: rates a second, by the name of what answered."""

    tokens: dict[str, float]
    first_tokens: dict[str, float]
    """One over the median of the seconds."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as copy, ExitStack() as running:
        model = workload.without_end(folder, Path(copy))
        worker = running.enter_context(Worker())
        worker.ask(Load(path=str(model)))
        ours = running.enter_context(lmwire_server(model))
        peers = {name: running.enter_context(peer_server(name, model)) for name in installed_peers()}
        for streams in STREAMS:
            turns = [_turn(worker, ours, peers, streams, tokens, turn) for turn in range(1 + rounds)][1:]
            yield from _figures(turns, streams)


def _turn(worker: Worker, ours: Server, peers: dict[str, Server], streams: int, tokens: int, turn: int) -> Turn:
    """Asks one after the other, so that a busy machine slows all. No prompt was asked before: none is cached."""
    prompts = [workload.prose(f"{turn}/{streams}/{stream}") for stream in range(streams)]
    answered = {name: server.answer(prompts, tokens) for name, server in {OURS: ours, **peers}.items()}
    rates = {name: streams * tokens / run.seconds for name, run in answered.items()}
    rates[PIPE] = worker.rate([workload.asked(prompt, tokens) for prompt in prompts])
    return Turn(rates, {name: 1 / median(run.first_token_s) for name, run in answered.items()})


def _figures(turns: list[Turn], streams: int) -> Iterator[Figure]:
    many = "1 stream" if streams == 1 else f"{streams} streams"
    yield ratio(f"{many} over HTTP, against {PIPE}", _pairs(turns, PIPE), 0.95, "tok/s")
    peers = [name for name in turns[0].first_tokens if name != OURS]
    for name in peers:
        yield ratio(f"{many}, against {name}", _pairs(turns, name), 1.0, "tok/s")
    for name in peers:
        pairs = [(turn.first_tokens[name], turn.first_tokens[OURS]) for turn in turns]
        yield sooner(f"first token of {many}, median, against {name}", pairs, 1.0)


def _pairs(turns: list[Turn], name: str) -> Pairs:
    return [(turn.tokens[name], turn.tokens[OURS]) for turn in turns]
