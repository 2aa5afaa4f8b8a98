"""`lmwire bench start`: the time of the first commands, against the imports and the load that they need."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Final

from lmwire_protocol import Chat, Load, Message

from ....child_process import child_environment, python_command
from ..pairing import Pairs, latency_ratio, measure_pairs
from ..programs.processes import WorkerProcess
from ..results import Result

_TARGET: Final = 1 / 0.3
"""Ratio of speeds: a worker has its first token in three tenths of what the import of mlx-lm takes."""
_IDLE_MB: Final = 70.0

_LOAD: Final = (
    "import sys; from pathlib import Path; from mlx_lm import load; import lmwire_worker; "
    "load(str(Path(lmwire_worker.__file__).parent / 'builtin' / 'tiny'))"
)


def measure(folder: None, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure the help, a chat with the built-in model, and a worker up to its first token, each in new processes."""
    yield _against(rounds, "lmwire --help, against import msgspec", "import msgspec", ("--help",), 0.5)
    chat = ("chat", "builtin:tiny", "--max-tokens", str(tokens), "-p", "hi")
    yield _against(rounds, "lmwire chat -p hi, against mlx_lm.load of the same model", _LOAD, chat, _TARGET)
    yield from _measure_workers(rounds)


def _against(rounds: int, name: str, bare: str, command: tuple[str, ...], target: float) -> Result:
    base = [sys.executable, "-P", "-c", bare]
    measured = python_command("lmwire", *command)
    return latency_ratio(name, measure_pairs(rounds, lambda: _rate(base), lambda: _rate(measured)), target)


def _rate(command: list[str]) -> float:
    """Return how many such processes run to their end in a second, one after another."""
    started = perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=child_environment())
    return 1 / (perf_counter() - started)


def _measure_workers(rounds: int) -> Iterator[Result]:
    """Measure workers from their spawn to the first token of the built-in model, and the import of mlx-lm, in turns."""
    imports, workers = zip(*((_import(), _answer()) for _ in range(1 + rounds)), strict=True)
    for at, what in enumerate(("processor time", "time")):
        pairs: Pairs = [(1 / base[at], 1 / found[at]) for base, found in zip(imports[1:], workers[1:], strict=True)]
        yield latency_ratio(f"{what} to the first token of builtin:tiny, against import mlx_lm", pairs, _TARGET)
    size = sorted(found[2] for found in workers)[len(workers) // 2]
    yield Result("memory of a worker with builtin:tiny that waits", size, "MB", _IDLE_MB, f"{len(workers)} workers")


def _import() -> tuple[float, float]:
    """Return the processor time and the time of `import mlx_lm` in a new process, in seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    _rate([sys.executable, "-P", "-c", "import mlx_lm"])
    time, after = perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time


def _answer() -> tuple[float, float, float]:
    """Return the processor time and the time to a first token, in seconds, and the memory after that, in MB."""
    started = perf_counter()
    with WorkerProcess() as worker:
        question = Chat(messages=[Message(role="user", content="Who are you?")], max_tokens=4)
        worker.send({"load": Load(path="builtin:tiny"), "chat": question})
        events = worker.events(terminals=2)
        next(event for event in events if event["event"] == "token")
        measured = worker.processor_seconds(), perf_counter() - started
        for _ in events:
            pass
        return *measured, worker.resident_bytes() / 1e6
