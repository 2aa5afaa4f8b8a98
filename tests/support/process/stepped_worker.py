"""Workers in a row, for hosts that start several: `python gated_worker.py FOLDER PLAN...`.

The first one that is started plays the first plan, and so on; whatever comes after the last plays the last again. A
plan is the mock worker's options in one argument. One that begins with `gate` comes up only when it is let through.
"""

import os
import shlex
import sys
from itertools import count
from pathlib import Path

GATE = "gate"


def in_a_row(folder: Path, *plans: str) -> tuple[str, ...]:
    """The command that runs the workers, which use the folder, for themselves, to know which is the next."""
    folder.mkdir(exist_ok=True)
    for number, plan in enumerate(plans):
        if plan.startswith(GATE):
            os.mkfifo(folder / f"{GATE}-{number}")
    return (sys.executable, __file__, str(folder), *plans)


def let_through(folder: Path, number: int) -> None:
    """Lets a worker come up; waits until it has been started."""
    with open(folder / f"{GATE}-{number}", "w"):
        pass


def started(folder: Path) -> int:
    """How many have been started."""
    return len(list(folder.glob("started-*")))


def main() -> None:
    from lmwire_worker.__main__ import main as run_worker

    folder, *plans = sys.argv[1:]
    number = next(number for number in count() if _is_mine(Path(folder) / f"started-{number}"))
    options = shlex.split(plans[min(number, len(plans) - 1)])
    if options[:1] == [GATE]:
        with open(Path(folder) / f"{GATE}-{number}"):
            pass
        del options[0]
    run_worker(["--mock", *options])


def _is_mine(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":
    main()
