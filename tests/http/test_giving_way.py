"""Where cores are few, the server lets its workers go first."""

import os
import sys

import pytest

from http_server import MOCK, children, served


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such policy")
def test_its_thread_interrupts_no_worker() -> None:
    with served("mock", "--preload", "--worker", MOCK) as server:
        server.wait_for("lmwire_worker_up", 1)
        assert os.sched_getscheduler(server.process.pid) == os.SCHED_BATCH | os.SCHED_RESET_ON_FORK
        assert [os.sched_getscheduler(worker) for worker in children(server.process.pid)] == [os.SCHED_OTHER]
