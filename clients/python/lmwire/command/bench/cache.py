"""`lmwire bench cache`: how much sooner an answer begins when its prompt is known, and what it costs when it is not."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Final

from lmwire_protocol import Generate, Load, Unload

from ..failures import Failure
from . import workload
from .figures import Figure
from .peer import Worker
from .turns import extra_ms, in_turns, sooner

_PROMPT: Final = 4096
_ENTRIES: Final = 1000
_SHORT: Final = 32
_TOGETHER: Final = 32
_TURN: Final = 16
"""Prompts with the cache off, and as many with it on: so few that a busy machine is equally busy with both."""
_CONTEXT: Final = 2 * _PROMPT


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    prompts = Prompts()
    with tempfile.TemporaryDirectory() as copy:
        load = Load(path=str(workload.without_end(folder, Path(copy), context=_CONTEXT)))
        with Worker() as worker:
            worker.ask(load)
            yield _from_memory(worker, prompts, rounds)
            yield _miss(worker, prompts, tokens, rounds)
        yield _from_disk(load, prompts, rounds)


class Prompts:
    """Prompts of which no two begin alike for long."""

    def __init__(self) -> None:
        self._chance = Random(0)

    def next(self, length: int) -> list[int]:
        return [self._chance.randrange(200) for _ in range(length)]


def _from_memory(worker: Worker, prompts: Prompts, rounds: int) -> Figure:
    """A long prompt for the first time, and with another last token."""
    prompt: list[int] = []

    def cold() -> float:
        prompt[:] = prompts.next(_PROMPT)
        return worker.rate([Generate(prompt=prompt, max_tokens=1)])

    pairs = in_turns(rounds, cold, lambda: _rate_cached(worker, prompt))
    return sooner(f"first token of a prompt of {_PROMPT} tokens that is cached, against not", pairs, 20)


def _from_disk(load: Load, prompts: Prompts, rounds: int) -> Figure:
    """Long prompts that no worker has seen, and such that an earlier one has."""
    known = [prompts.next(_PROMPT) for _ in range(1 + rounds)]
    with tempfile.TemporaryDirectory() as directory:
        with Worker("--cache-dir", directory) as earlier:
            earlier.ask(load)
            for prompt in known:
                earlier.ask(Generate(prompt=prompt, max_tokens=1))
            earlier.ask(Unload())  # ends when all is written
        with Worker("--cache-dir", directory) as restarted:
            restarted.ask(load)

            def cold() -> float:
                return restarted.rate([Generate(prompt=prompts.next(_PROMPT), max_tokens=1, cache="off")])

            pairs = in_turns(rounds, cold, lambda: _rate_cached(restarted, known.pop()))
    return sooner("first token of such a prompt from disk after a restart, against not cached", pairs, 10)


def _rate_cached(worker: Worker, prompt: list[int]) -> float:
    """How often a second a prompt is answered of which all but the last token is cached."""
    started = perf_counter()
    done = worker.ask(Generate(prompt=[*prompt[:-1], 200], max_tokens=1))
    seconds = perf_counter() - started
    if (cached := done["usage"]["cached_tokens"]) < len(prompt) - 1:
        raise Failure(f"only {cached} of {len(prompt) - 1} tokens were cached: too little memory, or too slow a disk")
    return 1 / seconds


def _miss(worker: Worker, prompts: Prompts, count: int, rounds: int) -> Figure:
    """Short prompts that nobody has asked before, with the cache off and on."""
    for _ in range(0, _ENTRIES, _TOGETHER):
        worker.rate([Generate(prompt=prompts.next(_SHORT), max_tokens=1) for _ in range(_TOGETHER)])

    def off() -> float:
        return _rate(worker, [Generate(prompt=prompts.next(_SHORT), max_tokens=1, cache="off") for _ in range(_TURN)])

    def on() -> float:
        return _rate(worker, [Generate(prompt=prompts.next(_SHORT), max_tokens=1) for _ in range(_TURN)])

    pairs = in_turns(rounds * max(1, count // _TURN), off, on)
    return extra_ms(f"a prompt of {_SHORT} tokens that {_ENTRIES} entries do not know", pairs, 1, "with the cache off")


def _rate(worker: Worker, requests: list[Generate]) -> float:
    """Requests a second, one after another."""
    return len(requests) / sum(1 / worker.rate([request]) for request in requests)
