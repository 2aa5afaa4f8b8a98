"""`lmwire bench vision`: image chats against mlx_vlm in one process, and a second question about an image."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from lmwire_protocol import Load

from ..pairing import measure_pairs, speed_ratio
from ..programs.processes import LibraryProcess, WorkerProcess
from ..results import Result
from ..workload import image_chat

_STREAMS: Final = 8


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure image chats of a worker."""
    with WorkerProcess() as worker:
        worker.ask(Load(path=str(folder.resolve())))
        with LibraryProcess(folder, "mlx_vlm_batch") as library:
            yield _together(worker, library, tokens, rounds)
        yield _second_question(worker, rounds)


def _together(worker: WorkerProcess, library: LibraryProcess, tokens: int, rounds: int) -> Result:
    """Measure chats about images, with new images in each turn."""
    numbers = count(step=_STREAMS)

    def ours() -> float:
        first = next(numbers)
        return worker.rate([image_chat(first + stream, tokens) for stream in range(_STREAMS)])

    pairs = measure_pairs(rounds, lambda: library.rate(_STREAMS, tokens), ours)
    return speed_ratio(f"{_STREAMS} chats about images, against BatchGenerator", pairs, 0.9, "tok/s")


def _second_question(worker: WorkerProcess, rounds: int) -> Result:
    """Measure the first token of an answer about a new image, and of a second one about the same image."""
    numbers = count(1_000_000)
    number = 0

    def first() -> float:
        nonlocal number
        number = next(numbers)
        return worker.rate([image_chat(number, 1)])

    def second() -> float:
        return worker.rate([image_chat(number, 1, "How old may it be?")])

    pairs = measure_pairs(rounds, first, second)
    return speed_ratio("first token of a second question about an image, against the first", pairs, 5, "a second")
