"""`lmwire bench cache`: how much sooner an answer begins when its prompt is known, and what it costs when it is not."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from lmwire_protocol import Generate, Load

from . import workload
from .figures import Figure
from .peer import Worker
from .turns import extra_ms, in_turns, ratio

_PROMPT: Final = 4096
_ENTRIES: Final = 1000
_SHORT: Final = 32
_TOGETHER: Final = 32
_CONTEXT: Final = 2 * _PROMPT


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as copy, Worker() as worker:
        worker.ask(Load(path=str(workload.without_end(folder, Path(copy), context=_CONTEXT))))
        prompts = Prompts()
        yield _first_token(worker, prompts, rounds)
        yield _miss(worker, prompts, tokens, rounds)


class Prompts:
    """Prompts of which no two begin alike for long."""

    def __init__(self) -> None:
        self._chance = Random(0)

    def next(self, length: int) -> list[int]:
        return [self._chance.randrange(200) for _ in range(length)]


def _first_token(worker: Worker, prompts: Prompts, rounds: int) -> Figure:
    """A long prompt for the first time, and with another last token."""
    prompt: list[int] = []

    def cold() -> float:
        prompt[:] = prompts.next(_PROMPT)
        return worker.rate([Generate(prompt=prompt, max_tokens=1)])

    def warm() -> float:
        return worker.rate([Generate(prompt=[*prompt[:-1], 200], max_tokens=1)])

    pairs = in_turns(rounds, cold, warm)
    return ratio(f"first token of a prompt of {_PROMPT} tokens that is cached, against not", pairs, 20, "a second")


def _miss(worker: Worker, prompts: Prompts, count: int, rounds: int) -> Figure:
    """Short prompts that nobody has asked before, with the cache off and on."""
    for _ in range(0, _ENTRIES, _TOGETHER):
        worker.rate([Generate(prompt=prompts.next(_SHORT), max_tokens=1) for _ in range(_TOGETHER)])

    def off() -> float:
        return _rate(worker, [Generate(prompt=prompts.next(_SHORT), max_tokens=1, cache="off") for _ in range(count)])

    def on() -> float:
        return _rate(worker, [Generate(prompt=prompts.next(_SHORT), max_tokens=1) for _ in range(count)])

    pairs = in_turns(rounds, off, on)
    return extra_ms(f"a prompt of {_SHORT} tokens that {_ENTRIES} entries do not know", pairs, 1, "with the cache off")


def _rate(worker: Worker, requests: list[Generate]) -> float:
    """Requests a second, one after another."""
    return len(requests) / sum(1 / worker.rate([request]) for request in requests)
