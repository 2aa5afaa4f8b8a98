"""`lmwire bench start`: the time of the first commands, against the imports and the load that they need."""

import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Final

from ....child_process import child_environment, python_command
from ..pairing import latency_ratio, measure_pairs
from ..results import Result

_LOAD: Final = (
    "import sys; from pathlib import Path; from mlx_lm import load; import lmwire_worker; "
    "load(str(Path(lmwire_worker.__file__).parent / 'builtin' / 'tiny'))"
)


def measure(folder: None, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure the help and a chat with the built-in model, each in new processes."""
    yield _against(rounds, "lmwire --help, against import msgspec", "import msgspec", ("--help",), 0.5)
    chat = ("chat", "builtin:tiny", "--max-tokens", str(tokens), "-p", "hi")
    yield _against(rounds, "lmwire chat -p hi, against mlx_lm.load of the same model", _LOAD, chat, 0.5)


def _against(rounds: int, name: str, bare: str, command: tuple[str, ...], target: float) -> Result:
    base = [sys.executable, "-P", "-c", bare]
    measured = python_command("lmwire", *command)
    return latency_ratio(name, measure_pairs(rounds, lambda: _rate(base), lambda: _rate(measured)), target)


def _rate(command: list[str]) -> float:
    """Return how many such processes run to their end in a second, one after another."""
    started = perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=child_environment())
    return 1 / (perf_counter() - started)
