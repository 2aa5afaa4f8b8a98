"""One core for a file of tests whose threads wait for one another.

MLX hands each operation to a thread of its own, and a server on a thread answers a client on another. Between two cores
each such step wakes a core, or interrupts the thread that another core runs: a million times in a minute of tests. On
one core, whose threads do not interrupt one another, the next thread runs when the present one waits.
"""

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest


@pytest.fixture(scope="module", autouse=True)
def on_one_core() -> Iterator[None]:
    """Keep the threads of a file's tests on one core, on Linux. A conftest.py that imports it applies it."""
    if sys.platform != "linux" or (before := _present()) is None:
        yield
        return
    _keep(_own(before.cores), os.SCHED_BATCH)
    yield
    _keep(*before)


class _Place(NamedTuple):
    """The cores on which a process runs, and its scheduling policy."""

    cores: Collection[int]
    policy: int


def _own(cores: Collection[int]) -> Collection[int]:
    """Return the core of this process of a run. The processes of a run take the cores in turn."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return [sorted(cores)[number % len(cores)]]


if sys.platform == "linux":

    def _present() -> _Place | None:
        """Return the place of this process; None in a container that does not tell."""
        try:
            return _Place(os.sched_getaffinity(0), os.sched_getscheduler(0))
        except OSError:
            return None

    def _keep(cores: Collection[int], policy: int) -> None:
        """Let all threads of this process, and those that they start, run on these cores and in this way."""
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError):  # it has ended, or a container forbids this
                os.sched_setaffinity(int(thread), cores)
                os.sched_setscheduler(int(thread), policy, os.sched_param(0))
