"""`lmwire bench http`: what the HTTP server costs, and what the model libraries' own servers make of the same model."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

from lmwire_protocol import Load

from . import workload
from .figures import Figure
from .http_servers import Run, Server, installed_peers, lmwire_server, peer_server
from .leaving import LEFT, Left, left_ms
from .peer import Worker
from .turns import ratio, sooner

Base = TypeVar("Base")

STREAMS: Final = {1: "1 stream", 8: "8 streams", 32: "32 streams"}
_MORE_OF_PIPE: Final = 12
"""Times as many rounds against the pipe: a few hundredths are looked for there, and a machine that is busy for a moment
spoils a whole round."""
_LEAVE: Final = 20
"""Times as many clients leave as there are rounds."""
_LEFT_MS: Final = 100.0
"""As soon a request should have ended when its client has left."""
_MORE_OF_PEER: Final = {1: 4, 8: 4, 32: 1}
"""The same against a peer: the first tokens of few streams are milliseconds apart."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as copy:
        model = workload.without_end(folder, Path(copy))
        yield from _against_pipe(model, tokens, rounds)
        for name in installed_peers():
            yield from _against_peer(name, model, tokens, rounds)


def _against_pipe(model: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with Worker() as worker, lmwire_server(model) as server:
        worker.ask(Load(path=str(model)))

        def ask(prompts: list[str]) -> float:
            return worker.rate([workload.asked(prompt, tokens) for prompt in prompts])

        for streams, many in STREAMS.items():
            turns = _in_turns(streams, rounds * _MORE_OF_PIPE, ask, _asking(server, tokens))
            pairs = [(rate, streams * tokens / run.seconds) for rate, run in turns]
            yield ratio(f"{many} over HTTP, against the pipe", pairs, 0.95, "tok/s")
        for what in LEFT:
            yield _leaving(what, server, rounds * _LEAVE)


def _leaving(what: Left, server: Server, clients: int) -> Figure:
    name = f"client that leaves {what} to its request cancelled, 99th percentile"
    detail = f"{clients} clients, as /metrics tells"
    return Figure(name, left_ms(server, clients, what), "ms", _LEFT_MS, detail)


def _against_peer(name: str, model: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    """With nothing else in memory: a peer may take all that there is."""
    with peer_server(name, model) as peer, lmwire_server(model) as server:
        for streams, many in STREAMS.items():
            turns = _in_turns(streams, rounds * _MORE_OF_PEER[streams], _asking(peer, tokens), _asking(server, tokens))
            made = streams * tokens
            rates = [(made / theirs.seconds, made / ours.seconds) for theirs, ours in turns]
            yield ratio(f"{many}, against {name}", rates, 1.0, "tok/s")
            yield _first_token(f"first token of {many}, median, against {name}", turns, median)
            if streams > 1:
                yield _first_token(f"last first token of {many}, against {name}", turns, max)


def _first_token(name: str, turns: list[tuple[Run, Run]], of: Callable[[list[float]], float]) -> Figure:
    return sooner(name, [(1 / of(theirs.first_token_s), 1 / of(ours.first_token_s)) for theirs, ours in turns], 1.0)


def _asking(server: Server, tokens: int) -> Callable[[list[str]], Run]:
    return lambda prompts: server.answer(prompts, tokens)


def _in_turns(
    streams: int, rounds: int, base: Callable[[list[str]], Base], measured: Callable[[list[str]], Run]
) -> list[tuple[Base, Run]]:
    """What both make of the same prompts, one after the other, so that a busy machine slows both.

    No prompt was asked before: none is cached. A first turn only warms up.
    """
    turns = []
    for turn in range(1 + rounds):
        prompts = [workload.prose(f"{turn}/{streams}/{stream}") for stream in range(streams)]
        turns.append((base(prompts), measured(prompts)))
    return turns[1:]
