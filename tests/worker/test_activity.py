"""Ping: the reported state is always true, and the step age grows only while the engine computes."""

import pytest

from support.process.worker_process import Event
from support.process.worker_thread import MockOnThread
from support.runners.stepped_engine import LARGE
from support.runners.stepped_turns import Turns

RESTING = {"event": "done", "id": "ping", "cmd": "ping", "state": "idle", "active": 0, "queued": 0}


def ping(turns: Turns) -> Event:
    (pong,) = turns.send({"id": "ping", "cmd": "ping"})
    return pong


def test_a_worker_is_idle_from_its_last_terminal_on(turns: Turns) -> None:
    assert ping(turns) == RESTING
    turns.generate("a")
    turns.step()
    assert ping(turns)["state"] == "running"
    turns.step("all")
    assert turns.worker.engine == "idle"
    assert ping(turns) == RESTING


def test_a_request_that_ends_while_the_engine_computes_leaves_no_age(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    turns.worker.registry.end_all(lambda request: request.cancellation())
    assert turns.worker.engine == "step"
    assert ping(turns)["active"] == 0
    assert "step_age_ms" not in ping(turns)


def test_a_request_that_the_engine_has_not_taken_up_yet_counts_as_running(turns: Turns) -> None:
    turns.generate("a")
    turns.worker.clock.now += 0.5
    pong = ping(turns)
    assert (pong["state"], pong["active"], pong["queued"]) == ("running", 0, 1)
    assert pong["step_age_ms"] == 500


def test_a_load_is_reported_until_it_has_ended(turns: Turns) -> None:
    turns.send({"id": "load", "cmd": "load", "path": "other"})
    turns.step()
    assert (turns.worker.engine, ping(turns)["state"]) == ("load", "loading")
    turns.worker.clock.now += 3
    assert ping(turns)["step_age_ms"] == 3000
    turns.step("report")
    assert ping(turns)["step_age_ms"] == 0
    turns.step("fail")
    assert ping(turns) == RESTING


def test_an_engine_that_waits_for_an_image_is_idle(turns: Turns) -> None:
    turns.show("a")
    turns.step()
    assert ping(turns) == {**RESTING, "queued": 1}
    turns.finish("a")
    assert ping(turns)["state"] == "running", "there is something for it to do"
    turns.step()
    assert ping(turns)["active"] == 1
    turns.step("all")
    assert ping(turns) == RESTING


def test_beside_an_image_that_is_read_the_engine_runs(turns: Turns) -> None:
    turns.show("a")
    turns.generate("text")
    turns.step()
    assert (ping(turns)["state"], ping(turns)["active"], ping(turns)["queued"]) == ("running", 1, 1)
    turns.step("all")
    assert ping(turns) == {**RESTING, "queued": 1}


def test_a_request_that_waits_for_memory_waits_for_one_that_runs(turns: Turns) -> None:
    turns.generate("a", f"b{LARGE}")
    turns.step()
    assert (ping(turns)["state"], ping(turns)["active"], ping(turns)["queued"]) == ("running", 1, 1)
    turns.step("all")
    assert (ping(turns)["state"], ping(turns)["active"], ping(turns)["queued"]) == ("running", 1, 0)


def test_a_paused_engine_has_no_age(turns: Turns) -> None:
    turns.generate("a")
    turns.worker.events.host_reads = False
    turns.step()
    assert ping(turns) == {**RESTING, "state": "paused", "active": 1}
    turns.worker.events.host_reads = True
    turns.step()
    assert (turns.worker.engine, ping(turns)["state"]) == ("step", "running")


@pytest.mark.parametrize("resting", [True, False])
def test_a_worker_that_is_ending_has_an_age_only_while_it_computes(turns: Turns, resting: bool) -> None:
    turns.generate("a")
    turns.worker.events.host_reads = not resting
    turns.step()
    turns.send({"id": "quit", "cmd": "quit", "drain": True})
    assert ping(turns)["state"] == "draining"
    assert ("step_age_ms" in ping(turns)) == (not resting)


def test_a_worker_that_has_answered_is_idle() -> None:
    with MockOnThread() as worker:
        worker.load("mock")
        for number, prompt in enumerate(("Hello", "The sea")):
            worker.call({"id": f"g{number}", "cmd": "generate", "prompt": prompt, "max_tokens": 3})
            assert worker.call({"id": f"p{number}", "cmd": "ping"}) == {**RESTING, "id": f"p{number}"}
        worker.call({"id": "bad", "cmd": "load", "path": "/none"})
        assert worker.call({"id": "p", "cmd": "ping"}) == {**RESTING, "id": "p"}
