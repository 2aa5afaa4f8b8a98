"""If the runner asks for it, the first request of an empty runner waits for the next ones, to start together."""

import pytest

from support.runners.stepped_turns import Turns


@pytest.fixture
def turns(turns: Turns) -> Turns:
    turns.worker.runner.batch_wait_s = 3600.0
    return turns


def test_the_first_begins_with_those_that_come_just_behind(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    assert (turns.worker.engine, turns.started) == ("waiting for others", ["a"])
    turns.generate("b")
    turns.step()
    assert (turns.worker.engine, turns.started) == ("waiting for others", ["a", "b"])
    turns.step()
    assert turns.worker.engine == "step", "nothing more has come"


def test_a_group_that_is_complete_does_not_wait(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    turns.generate("b")
    turns.worker.runner.batch_wait_s = 0.0
    turns.step()
    assert (turns.worker.engine, turns.started) == ("step", ["a", "b"])


def test_what_the_runner_does_not_hold_ends_the_wait(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    turns.send({"id": "count", "cmd": "tokenize", "prompt": "how many?"})
    (refusal,) = turns.step()
    assert (refusal["event"], refusal["id"]) == ("error", "count")
    assert turns.worker.engine == "step"


def test_who_finds_others_at_work_does_not_wait(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    turns.step()
    turns.generate("b")
    turns.step()
    assert (turns.worker.engine, turns.started) == ("step", ["a", "b"])


def test_a_cancel_ends_the_wait(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    turns.send({"id": "cancel", "cmd": "cancel", "target": "a"})
    turns.step()
    assert turns.worker.engine == "step"
    (end,) = (event for event in turns.step() if event["event"] == "done")
    assert (end["id"], end["finish_reason"]) == ("a", "cancelled")


def test_a_runner_that_asks_for_none_begins_at_once(turns: Turns) -> None:
    turns.worker.runner.batch_wait_s = 0.0
    turns.generate("a")
    turns.step()
    assert turns.worker.engine == "step"
