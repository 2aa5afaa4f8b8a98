"""Run a folder of tests while its processes are stopped for up to 5 s, at random: shake.py AREA [--seed N] [OPTIONS].

A busy machine gives a process no time just when a test expects it least. This does the same on purpose, so that a test
that depends on the speed of a machine fails here, and not once in four runs of the whole suite.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final

import psutil

LONGEST_STOP_S: Final = 5.0
MEAN_STOP_S: Final = 0.7
MEAN_PAUSE_S: Final = 0.3
"""Mean time between two stops, in seconds."""


def main() -> int:
    """Run the tests, and return pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("area", help="a folder or file beneath tests/")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="repeat the stops of a run")
    arguments, options = parser.parse_known_args()
    print(f"shake.py {arguments.area} --seed {arguments.seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"tests/{arguments.area}", *options]
    tests = subprocess.Popen(command)
    over = threading.Event()
    shaker = threading.Thread(target=shake, args=(psutil.Process(tests.pid), random.Random(arguments.seed), over))
    shaker.start()
    try:
        return tests.wait()
    finally:
        over.set()
        shaker.join()
        tests.kill()


def shake(tests: psutil.Process, chance: random.Random, over: threading.Event) -> None:
    """Stop one process after another until it is over. A process that a test has stopped itself is left alone.

    Args:
        tests: The process of the tests, which is stopped too.
        chance: Chooses the processes and the times.
        over: Set when the tests have ended.
    """
    while not over.wait(chance.expovariate(1 / MEAN_PAUSE_S)):
        with suppress(psutil.Error, ProcessLookupError):
            process = chance.choice([tests, *tests.children(recursive=True)])
            if process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                continue
            os.kill(process.pid, signal.SIGSTOP)
            try:
                over.wait(min(LONGEST_STOP_S, chance.expovariate(1 / MEAN_STOP_S)))
            finally:
                os.kill(process.pid, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main())
