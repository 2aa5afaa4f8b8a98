"""Cancel lands in every state, and every request has exactly one terminal, on a worker without a model."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import settings

from support.process.worker_process import WorkerProcess
from support.process.worker_thread import MockOnThread

pytestmark = pytest.mark.slow

SLOW_LOAD = "mock:load_steps=100000,step_ms=1"
RACES = 20 * settings().max_examples
ENDLESS = {"cmd": "generate", "prompt": "a b", "max_tokens": 1_000_000}


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with MockOnThread() as worker:
        yield worker


@pytest.fixture
def process() -> Iterator[WorkerProcess]:
    with WorkerProcess("--mock") as process:
        yield process


def check_order(worker: WorkerProcess, cancel: str, *ended: str) -> None:
    """The cancel's done comes before the terminals that it caused."""
    terminals = [event["id"] for event in worker.events if event["event"] in ("done", "error") and "id" in event]
    assert all(terminals.index(cancel) < terminals.index(id) for id in ended)
    worker.check_terminals([cancel, *ended])


def test_a_cancel_in_the_same_write_as_its_request(worker: WorkerProcess) -> None:
    worker.load("mock")
    worker.send({"id": "g", **ENDLESS}, {"id": "c", "cmd": "cancel", "target": "g"})
    assert worker.terminal("g")["finish_reason"] == "cancelled"
    assert worker.terminal("c")["matched"] == 1
    check_order(worker, "c", "g")


def test_a_cancel_of_a_request_queued_after_a_load(worker: WorkerProcess) -> None:
    worker.send({"id": "l", "cmd": "load", "path": SLOW_LOAD}, {"id": "g", **ENDLESS}, {"id": "i", "cmd": "info"})
    worker.wait_for(lambda event: event["event"] == "progress")
    worker.send({"id": "c", "cmd": "cancel", "target": "g"}, {"id": "c2", "cmd": "cancel", "target": "i"})
    done = worker.terminal("g")
    assert done["finish_reason"] == "cancelled"
    assert done["usage"] == {"prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0}
    assert worker.terminal("i")["code"] == "cancelled"
    assert worker.of("l")[-1]["event"] == "progress", "the load went on"
    check_order(worker, "c", "g")


def test_a_cancel_of_a_queued_load_lets_later_requests_start(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    worker.send({"id": "long", **ENDLESS})
    worker.first_token("long")
    worker.send({"id": "swap", "cmd": "load", "path": "mock"}, {"id": "behind", "cmd": "info"})
    worker.send({"id": "c", "cmd": "cancel", "target": "swap"})
    assert worker.terminal("swap")["code"] == "cancelled"
    assert worker.terminal("behind")["path"] == "mock:step_ms=1"
    assert worker.of("long")[-1]["event"] == "token", "the running request went on"


def test_a_cancel_of_a_request_that_waits_for_a_row(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    ids = [f"r{i}" for i in range(80)]
    worker.send(*({"id": id, **ENDLESS} for id in ids))
    worker.first_token("r0")
    worker.send({"id": "c", "cmd": "cancel", "target": "r79"})
    assert worker.terminal("r79")["usage"]["completion_tokens"] == 0
    worker.send({"id": "all", "cmd": "cancel", "all": True})
    for id in ids:
        worker.terminal(id)
    worker.check_terminals(ids)


def test_a_cancel_of_a_load(worker: WorkerProcess) -> None:
    worker.send({"id": "l", "cmd": "load", "path": SLOW_LOAD})
    worker.wait_for(lambda event: event["event"] == "progress")
    worker.send({"id": "c", "cmd": "cancel", "target": "l"})
    error = worker.terminal("l")
    assert (error["code"], error["loaded"]) == ("cancelled", False)
    check_order(worker, "c", "l")
    worker.load("mock")


def test_a_cancel_amid_a_prefill(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=100")  # a prefill of two hundred steps
    worker.send({"id": "g", "cmd": "generate", "prompt": "w " * 100_000})
    worker.wait_for(lambda event: event["event"] == "progress" and event["stage"] == "prefill")
    worker.send({"id": "c", "cmd": "cancel", "target": "g"})
    done = worker.terminal("g")
    assert (done["finish_reason"], done["usage"]["completion_tokens"]) == ("cancelled", 0)
    assert done["usage"]["prompt_tokens"] == 100_000
    check_order(worker, "c", "g")


def test_a_cancel_amid_the_decode_keeps_the_text_so_far(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    worker.send({"id": "g", **ENDLESS})
    worker.first_token("g")
    worker.send({"id": "c", "cmd": "cancel", "target": "g"})
    done = worker.terminal("g")
    assert done["finish_reason"] == "cancelled"
    assert done["usage"]["completion_tokens"] == len(worker.token_ids("g")) > 0
    check_order(worker, "c", "g")


def test_a_cancel_of_a_finished_unknown_or_uncancellable_request(worker: WorkerProcess) -> None:
    worker.load("mock")
    worker.call({"id": "g", "cmd": "generate", "prompt": "x"})
    assert worker.call({"id": "c1", "cmd": "cancel", "target": "g"})["matched"] == 0
    assert worker.call({"id": "c2", "cmd": "cancel", "target": "never seen"})["matched"] == 0
    assert worker.call({"id": "c3", "cmd": "cancel", "target": "c3"})["matched"] == 0
    assert worker.call({"id": "c4", "cmd": "cancel", "all": True})["matched"] == 0
    worker.load("mock:step_ms=1", id="slower")
    worker.send({"id": "g", **ENDLESS}, {"id": "q", "cmd": "quit", "drain": True})
    assert worker.call({"id": "c5", "cmd": "cancel", "target": "q"})["matched"] == 0
    assert worker.call({"id": "c6", "cmd": "cancel", "all": True})["matched"] == 1


def test_a_second_cancel_of_a_request(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=20")
    worker.send({"id": "g", **ENDLESS})
    worker.first_token("g")
    worker.send({"id": "c1", "cmd": "cancel", "target": "g"}, {"id": "c2", "cmd": "cancel", "target": "g"})
    worker.terminal("g")
    worker.terminal("c2")
    worker.check_terminals(["c1", "c2", "g"])


def test_a_cancel_of_all_requests(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    ids = [f"r{i}" for i in range(200)]
    worker.send(*({"id": id, **ENDLESS} for id in ids))
    worker.first_token("r0")
    assert worker.call({"id": "c", "cmd": "cancel", "all": True})["matched"] == 200
    for id in ids:
        assert worker.terminal(id)["finish_reason"] == "cancelled"
    check_order(worker, "c", *ids)


def test_hundreds_of_races_end_every_request_once(process: WorkerProcess) -> None:
    """Short requests, so that a cancel meets them queued, running, ending and ended."""
    worker = process
    worker.load("mock")
    rng = random.Random(5)
    ids = [f"r{i}" for i in range(RACES)]
    for start in range(0, RACES, 50):
        batch = ids[start : start + 50]
        waiting: list[str] = []
        for id in batch:
            request = {"id": id, "cmd": "generate", "prompt": "a b c", "max_tokens": rng.choice([0, 1, 5, 400])}
            waiting.append(id)
            rng.shuffle(waiting)
            late = [waiting.pop() for _ in range(rng.randrange(len(waiting) + 1))]
            worker.send(request, *({"id": f"c-{target}", "cmd": "cancel", "target": target} for target in late))
        worker.send(*({"id": f"c-{target}", "cmd": "cancel", "target": target} for target in waiting))
        for id in batch:
            worker.terminal(id)
            worker.terminal(f"c-{id}")
    worker.check_terminals([*ids, *(f"c-{id}" for id in ids)])
    for id in ids:
        if worker.terminal(id)["finish_reason"] == "cancelled":
            check_order(worker, f"c-{id}", id)
    reasons = {worker.terminal(id)["finish_reason"] for id in ids}
    assert "cancelled" in reasons
    assert reasons <= {"cancelled", "length"}  # the length comes first if the worker is fast enough
    assert worker.call({"id": "still", "cmd": "generate", "prompt": "alive"})["finish_reason"] == "stop"
