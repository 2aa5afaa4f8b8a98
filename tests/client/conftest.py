"""A check after each test of the client: no thread and no descriptor is left."""

import faulthandler
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from support.process.worker_process import SECONDS


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Check that the test ends, and leaves no thread or descriptor of a worker."""
    gc.collect()  # so that this test is not blamed for descriptors of earlier tests
    before, threads = open_files(), set(threading.enumerate())
    faulthandler.dump_traceback_later(2 * SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    left = set(threading.enumerate()) - threads
    assert [thread.name for thread in left if thread.name.startswith(("lmwire", "worker-"))] == []
    assert open_files() - before == set()


def open_files() -> set[tuple[int, int, int]]:
    """Return the descriptors of this process, each with the device and inode of its file."""
    found: set[tuple[int, int, int]] = set()
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # the descriptor of the listing itself
            status = os.fstat(int(name))
            found.add((int(name), status.st_dev, status.st_ino))
    return found
