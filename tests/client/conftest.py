"""What every test of the client must leave behind: nothing."""

import faulthandler
import gc
import os
import threading
from collections.abc import Iterator

import pytest

from worker_process import SECONDS


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends, and without a thread or a descriptor of a worker's."""
    gc.collect()  # what other tests of this process have left
    before = len(os.listdir("/dev/fd"))
    faulthandler.dump_traceback_later(2 * SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("lmwire")] == []
    assert len(os.listdir("/dev/fd")) == before
