"""A request that does not fit into memory waits, in its turn, until others have ended."""

from typing import Any

import pytest

from support.runners.stepped_engine import LARGE, SteppedRunner
from support.runners.stepped_turns import Turns


def test_a_request_that_waits_for_memory_starts_when_the_running_one_ends(turns: Turns) -> None:
    turns.generate("a", LARGE)
    turns.step()
    turns.step()
    assert turns.started == ["a"] and turns.counts() == (1, 1)
    turns.step("all")
    assert turns.started == ["a", LARGE] and turns.counts() == (1, 0)


def test_no_later_request_overtakes_one_that_waits_for_memory(turns: Turns) -> None:
    turns.generate("a", LARGE, "b")
    turns.step()
    turns.generate("c")
    turns.step()
    assert turns.started == ["a"]
    turns.step("all")
    assert turns.started == ["a", LARGE, "b"]


def test_a_waiting_request_is_not_tried_again_before_another_ends(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns.generate("a", LARGE)
    turns.step()
    tried: list[Any] = []
    monkeypatch.setattr(SteppedRunner, "add", lambda runner, key, request, *rest, **named: tried.append(request.prompt))
    turns.generate("b", "c")
    turns.step()
    turns.step()
    assert tried == []


def test_a_cancelled_request_that_waits_for_memory_lets_the_next_one_start(turns: Turns) -> None:
    turns.generate("a", LARGE, "b")
    turns.step()
    done, end = turns.send({"id": "cancel", "cmd": "cancel", "target": LARGE})
    assert (done["id"], done["matched"]) == ("cancel", 1)
    assert (end["id"], end["finish_reason"], end["usage"]["completion_tokens"]) == (LARGE, "cancelled", 0)
    turns.step()
    assert turns.started == ["a", "b"]


def test_the_queue_time_includes_the_wait_for_memory(turns: Turns) -> None:
    turns.generate("a", LARGE)
    turns.step()
    turns.worker.clock.now += 5
    turns.step("all")
    turns.worker.clock.now += 2
    (done,) = [event for event in turns.step("all") if event["event"] == "done"]
    timings = done["timings"]
    assert (timings["queued_ms"], timings["prefill_ms"], timings["first_token_ms"]) == (5000, 2000, 7000)
