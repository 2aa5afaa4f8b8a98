"""If the runner asks for it, the first request of an empty runner waits for the next ones, to start together."""

import pytest

from support.runners.stepped_turns import Turns


@pytest.fixture
def turns(turns: Turns) -> Turns:
    turns.worker.runner.batch_wait_s = 3600.0
    return turns


def test_the_first_request_starts_with_those_that_arrive_just_after_it(turns: Turns) -> None:
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


def test_a_refused_request_ends_the_wait(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    turns.send({"id": "count", "cmd": "tokenize", "prompt": "how many?"})
    (refusal,) = turns.step()
    assert (refusal["event"], refusal["id"]) == ("error", "count")
    assert turns.worker.engine == "step"


def test_a_request_beside_running_ones_does_not_wait(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    turns.step()
    turns.generate("b")
    turns.step()
    assert (turns.worker.engine, turns.started) == ("step", ["a", "b"])


def test_a_cancel_ends_the_wait(turns: Turns) -> None:
    turns.generate("a")
    turns.step()
    _, end = turns.send({"id": "cancel", "cmd": "cancel", "target": "a"})
    assert (end["id"], end["finish_reason"]) == ("a", "cancelled")
    turns.step()
    assert turns.worker.engine == "step"


def test_a_runner_without_a_batch_wait_starts_at_once(turns: Turns) -> None:
    turns.worker.runner.batch_wait_s = 0.0
    turns.generate("a")
    turns.step()
    assert turns.worker.engine == "step"
