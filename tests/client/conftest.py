"""What every test of the client must leave behind: nothing."""

import faulthandler
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from worker_process import SECONDS


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends, and without a thread or a descriptor of a worker's."""
    gc.collect()  # what other tests of this process have left, and what is closed only later is none of this one's
    before = open_files()
    faulthandler.dump_traceback_later(2 * SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("lmwire")] == []
    assert open_files() - before == set()


def open_files() -> set[tuple[int, int, int]]:
    """The descriptors of this process, each with what it is open on."""
    found: set[tuple[int, int, int]] = set()
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # the one that the list was read from
            status = os.fstat(int(name))
            found.add((int(name), status.st_dev, status.st_ino))
    return found
