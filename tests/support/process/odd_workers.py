"""Mock workers with an engine that does something odd in its steps: `python odd_workers.py NAME`, a function each."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

from lmwire_worker.__main__ import main
from lmwire_worker.engine.interface import RunnerEvent
from lmwire_worker.mock import MockRunner

NOISE = b"noise " * 10_000


def odd(name: str) -> list[str]:
    """The command that runs the worker."""
    assert name in globals(), name
    return [sys.executable, __file__, name]


def once(work: Callable[[], None]) -> Callable[[], None]:
    """Return a step that does the work the first time only."""
    done: list[bool] = []

    def step() -> None:
        if not done:
            done.append(True)
            work()

    return step


def floods_stdout() -> None:
    """As libraries that print would, and all that they start."""
    os.write(1, NOISE + b"\n")


def floods_stderr() -> None:
    """Straight to the descriptor, as native code does."""
    os.write(2, NOISE)


@once
def prints_forever() -> None:
    """On a thread of its own, to both, in pieces of lines."""

    def work() -> None:
        while True:
            print("forever", end=" ")
            os.write(1, b"and ever\n")
            print("noise", file=sys.stderr)

    threading.Thread(target=work, daemon=True).start()


@once
def leaves_a_child() -> None:
    """The child holds whatever it inherits open, long after the worker."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print(f"child {child.pid}", file=sys.stderr, flush=True)


@once
def makes_descriptors_non_blocking() -> None:
    """As event loops in libraries do to what they find."""
    for fd in (0, 1, 2):
        os.set_blocking(fd, False)


@once
def closes_descriptors() -> None:
    """As daemons do to themselves."""
    for fd in (0, 1, 2):
        os.close(fd)


@once
def handles_signals() -> None:
    """As libraries do that wait for their children."""
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    subprocess.run(["true"], check=True)


def run(oddity: Callable[[], None]) -> None:
    """A worker with an oddity; does not return."""
    step = MockRunner.step

    def odd_step(self: MockRunner) -> list[RunnerEvent]:
        oddity()
        return step(self)

    MockRunner.step = odd_step
    main(["--mock"])


if __name__ == "__main__":
    run(globals()[sys.argv[1]])
