"""Engines that print, fork, flood and meddle: the host's stream stays clean, and the worker does not wait for them."""

import os
import signal

import pytest

from support.process.odd_workers import NOISE, odd
from support.process.process_waits import GONE_SECONDS
from support.process.worker_process import WorkerProcess

pytestmark = pytest.mark.slow

WORDS = "one two three four five six seven eight nine ten "


def answer(worker: WorkerProcess, count: int = 200) -> str:
    """The text of a request, whose end must be a good one."""
    worker.load("mock")
    done = worker.call({"id": "g", "cmd": "generate", "prompt": WORDS, "max_tokens": count})
    assert done["finish_reason"] == "length"
    return worker.text("g")


@pytest.mark.parametrize("name", ["floods_stdout", "prints_forever"])
@pytest.mark.parametrize("read_stderr", [True, False])
def test_what_an_engine_prints_neither_reaches_the_host_nor_waits_for_it(name: str, read_stderr: bool) -> None:
    with WorkerProcess(command=odd(name), read_stderr=read_stderr) as worker:
        assert answer(worker) == WORDS * 20
        assert worker.quit() == 0
        worker.check_terminals(["load", "g", "the-quit"])
        assert (b"noise" in worker.stderr or b"ever" in worker.stderr) == read_stderr


def test_a_flood_of_stderr_that_is_read_costs_nothing() -> None:
    with WorkerProcess(command=odd("floods_stderr")) as worker:
        assert answer(worker) == WORDS * 20
        assert worker.quit() == 0
        assert worker.stderr.count(b"noise ") >= 200 * NOISE.count(b"noise ")


def test_an_engine_that_waits_for_stderr_to_be_read_does_not_hold_up_the_worker() -> None:
    with WorkerProcess(command=odd("floods_stderr"), read_stderr=False) as worker:
        worker.load("mock")
        worker.send({"id": "g", "cmd": "generate", "prompt": WORDS, "max_tokens": 10**6})
        worker.send({"id": "waits", "cmd": "unload"}, {"id": "p", "cmd": "ping"})
        worker.terminal("p")
        worker.send({"id": "c", "cmd": "cancel", "target": "waits"})
        assert worker.terminal("waits")["code"] == "cancelled"
        worker.signal(signal.SIGTERM)
        assert worker.process.wait(GONE_SECONDS) == 0
        worker.wait_end()
        worker.check_terminals(["g", "waits", "c", "p"])


def test_a_child_that_outlives_the_worker_holds_none_of_the_protocols_pipes() -> None:
    with WorkerProcess(command=odd("leaves_a_child")) as worker:
        assert answer(worker) == WORDS * 20
        worker.send({"id": "q", "cmd": "quit"})
        assert worker.process.wait(GONE_SECONDS) == 0
        worker.wait_output_end()
        assert worker.events[-1] == {"event": "done", "id": "q", "cmd": "quit"}
        with pytest.raises(BrokenPipeError):
            worker.send({"id": "p", "cmd": "ping"})
        worker.wait_for_stderr(b"child ")
        child = int(worker.stderr.split(b"child ")[1].split()[0])
        os.kill(child, signal.SIGKILL)  # it was there until now


@pytest.mark.parametrize("name", ["makes_descriptors_non_blocking", "closes_descriptors", "handles_signals"])
def test_an_engine_that_meddles_with_the_process_does_not_touch_the_protocol(name: str) -> None:
    with WorkerProcess(command=odd(name)) as worker:
        assert answer(worker, 20_000) == WORDS * 2000
        assert worker.quit() == 0
        worker.check_terminals(["load", "g", "the-quit"])
