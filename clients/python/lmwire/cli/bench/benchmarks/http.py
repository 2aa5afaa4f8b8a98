"""`lmwire bench http`: the HTTP server against the pipe, and against the model libraries' own servers."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

from lmwire_protocol import Load

from .. import workload
from ..pairing import latency_ratio, speed_ratio
from ..programs.http_servers import HttpServer, StreamTimings, installed_peers, lmwire_server, peer_server
from ..programs.processes import WorkerProcess
from ..results import Result
from .disconnect import ABANDONED, Abandoned, disconnect_ms

Base = TypeVar("Base")

STREAMS: Final = {1: "1 stream", 8: "8 streams", 32: "32 streams"}
_PIPE_ROUNDS_FACTOR: Final = 12
"""Rounds against the pipe for one round that was asked for.

The differences are a few hundredths, and a machine that is busy for a moment spoils a whole round.
"""
_CONTEXT_LEN: Final = 1_000_000
"""Context that is not full before a client disconnects, in tokens."""
_DISCONNECTS_FACTOR: Final = 20
"""Clients that disconnect, for one round."""
_DISCONNECT_TARGET_MS: Final = 100.0
"""Time within which a request should end after its client disconnects."""
_PEER_ROUNDS_FACTOR: Final = {1: 4, 8: 4, 32: 1}
"""Rounds against another server, by streams: the first tokens of few streams are milliseconds apart."""


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure `lmwire serve` against a worker's pipe, and against each other server that is installed."""
    with tempfile.TemporaryDirectory() as copy:
        model = workload.copy_without_eos(folder, Path(copy), context=_CONTEXT_LEN)
        yield from _against_pipe(model, tokens, rounds)
        for name in installed_peers():
            yield from _against_peer(name, model, tokens, rounds)


def _against_pipe(model: Path, tokens: int, rounds: int) -> Iterator[Result]:
    with WorkerProcess() as worker, lmwire_server(model) as server:
        worker.ask(Load(path=str(model)))

        def ask(prompts: list[str]) -> float:
            return worker.rate([workload.text_chat(prompt, tokens) for prompt in prompts])

        for streams, many in STREAMS.items():
            turns = _measure_turns(streams, rounds * _PIPE_ROUNDS_FACTOR, ask, _ask(server, tokens))
            pairs = [(rate, streams * tokens / run.seconds) for rate, run in turns]
            yield speed_ratio(f"{many} over HTTP, against the pipe", pairs, 0.95, "tok/s")
        for what in ABANDONED:
            yield _disconnects(what, server, rounds * _DISCONNECTS_FACTOR)


def _disconnects(what: Abandoned, server: HttpServer, clients: int) -> Result:
    name = f"client that leaves {what} to its request cancelled, 99th percentile"
    detail = f"{clients} clients, as /metrics reports"
    return Result(name, disconnect_ms(server, clients, what), "ms", _DISCONNECT_TARGET_MS, detail)


def _against_peer(name: str, model: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure against one other server, without a third program: that server may take all memory."""
    with peer_server(name, model) as peer, lmwire_server(model) as server:
        for streams, many in STREAMS.items():
            turns = _measure_turns(
                streams, rounds * _PEER_ROUNDS_FACTOR[streams], _ask(peer, tokens), _ask(server, tokens)
            )
            total = streams * tokens
            rates = [(total / theirs.seconds, total / ours.seconds) for theirs, ours in turns]
            yield speed_ratio(f"{many}, against {name}", rates, 1.0, "tok/s")
            yield _first_token(f"first token of {many}, median, against {name}", turns, median)
            if streams > 1:
                yield _first_token(f"last first token of {many}, against {name}", turns, max)


def _first_token(
    name: str, turns: list[tuple[StreamTimings, StreamTimings]], of: Callable[[list[float]], float]
) -> Result:
    return latency_ratio(
        name, [(1 / of(theirs.first_token_s), 1 / of(ours.first_token_s)) for theirs, ours in turns], 1.0
    )


def _ask(server: HttpServer, tokens: int) -> Callable[[list[str]], StreamTimings]:
    return lambda prompts: server.answer(prompts, tokens)


def _measure_turns(
    streams: int, rounds: int, base: Callable[[list[str]], Base], measured: Callable[[list[str]], StreamTimings]
) -> list[tuple[Base, StreamTimings]]:
    """Return both measurements of the same prompts, taken in turns, so that a busy machine slows both.

    All prompts are new, so that none is cached. A first turn runs as a warm-up.
    """
    turns: list[tuple[Base, StreamTimings]] = []
    for turn in range(1 + rounds):
        prompts = [workload.text_prompt(f"{turn}/{streams}/{stream}") for stream in range(streams)]
        turns.append((base(prompts), measured(prompts)))
    return turns[1:]
