"""Workers in a row, for hosts that start several: `python stepped_worker.py FOLDER PLAN...`.

The first worker that is started plays the first plan, the second the next, and so on; the last plan repeats. A plan is
the mock worker's options in one argument. A worker whose plan begins with `gate` waits until `let_through` is called.
"""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

GATE = "gate"


def in_a_row(folder: Path, *plans: str) -> tuple[str, ...]:
    """Return the command that runs the workers, which mark in the folder how many have been started."""
    folder.mkdir(exist_ok=True)
    for number, plan in enumerate(plans):
        if plan.startswith(GATE):
            os.mkfifo(folder / f"{GATE}-{number}")
    return (sys.executable, __file__, str(folder), *plans)


def let_through(folder: Path, number: int) -> None:
    """Let a worker begin its plan. Wait until its process has been started."""
    with open(folder / f"{GATE}-{number}", "w"):
        pass


def started(folder: Path) -> int:
    """Return the number of workers that have been started."""
    return len(list(folder.glob("started-*")))


def wait_at(gate: Path) -> None:
    """Wait until a worker's gate is opened."""
    with open(gate):
        pass


def next_plan(arguments: Sequence[str], wait: Callable[[Path], None] = wait_at) -> list[str]:
    """Return the mock's options for the worker that starts now, once its gate has been opened.

    Args:
        arguments: The folder and the plans.
        wait: Waits at a gate.
    """
    folder, *plans = arguments
    number = next(number for number in count() if _is_mine(Path(folder) / f"started-{number}"))
    options = shlex.split(plans[min(number, len(plans) - 1)])
    if options[:1] == [GATE]:
        wait(Path(folder) / f"{GATE}-{number}")
        del options[0]
    return options


def main() -> None:
    from lmwire_worker.__main__ import main as run_worker

    run_worker(["--mock", *next_plan(sys.argv[1:])])


def _is_mine(marker: Path) -> bool:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":
    main()
