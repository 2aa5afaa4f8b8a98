"""`lmwire bench vision`: what images cost beside mlx_vlm in one process, and how soon a second question is answered."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from lmwire_protocol import Load

from .figures import Figure
from .peer import InProcess, Worker
from .turns import in_turns, ratio
from .workload import seen

_STREAMS: Final = 8


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with Worker() as worker:
        worker.ask(Load(path=str(folder.resolve())))
        with InProcess(folder, "in_process_vision") as library:
            yield _together(worker, library, tokens, rounds)
        yield _second_question(worker, rounds)


def _together(worker: Worker, library: InProcess, tokens: int, rounds: int) -> Figure:
    """Chats about images that are new each time."""
    numbers = count(step=_STREAMS)

    def ours() -> float:
        first = next(numbers)
        return worker.rate([seen(first + stream, tokens) for stream in range(_STREAMS)])

    pairs = in_turns(rounds, lambda: library.rate(_STREAMS, tokens), ours)
    return ratio(f"{_STREAMS} chats about images, against BatchGenerator", pairs, 0.9, "tok/s")


def _second_question(worker: Worker, rounds: int) -> Figure:
    """The first token of an answer about a new image, and about the same one."""
    numbers = count(1_000_000)
    number = 0

    def first() -> float:
        nonlocal number
        number = next(numbers)
        return worker.rate([seen(number, 1)])

    def second() -> float:
        return worker.rate([seen(number, 1, "How old may it be?")])

    pairs = in_turns(rounds, first, second)
    return ratio("first token of a second question about an image, against the first", pairs, 5, "a second")
