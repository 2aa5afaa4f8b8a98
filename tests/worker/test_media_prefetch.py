"""A request whose images are being read waits for them, holds up nobody, and takes no memory before it is its turn."""

import pytest

from lmwire_worker.scheduling import scheduler
from support.runners.stepped_turns import Turns


def test_a_request_starts_when_its_images_are_read(turns: Turns) -> None:
    turns.show("a")
    turns.step()
    assert (turns.worker.engine, turns.reading, turns.started) == ("idle", ["a"], [])
    turns.finish("a")
    turns.step()
    assert (turns.worker.engine, turns.started) == ("step", ["a"])


def test_others_overtake_a_request_whose_images_are_not_read(turns: Turns) -> None:
    turns.show("a", "b")
    turns.generate("text")
    turns.step()
    assert turns.started == ["text"]
    turns.finish("b")
    turns.step()
    assert turns.started == ["text", "b"]


def test_a_load_waits_for_a_request_whose_images_are_read(turns: Turns) -> None:
    turns.show("a")
    turns.send({"id": "load", "cmd": "load", "path": "other"})
    turns.step()
    turns.finish("a")
    turns.step()
    assert turns.started == ["a"]
    turns.step("all")
    assert turns.started == ["a", "other"]


def test_a_request_cancelled_while_its_images_are_read_ends_at_once(turns: Turns) -> None:
    turns.show("a")
    turns.step()
    events = turns.send({"id": "cancel", "cmd": "cancel", "target": "a"})
    assert [(event["id"], event.get("finish_reason")) for event in events] == [("cancel", None), ("a", "cancelled")]
    turns.step()
    assert turns.worker.engine == "idle"
    turns.finish("a")  # too late
    turns.generate("text")
    turns.step()
    assert turns.started == ["text"]


def test_the_number_of_requests_whose_images_are_read_ahead_is_bounded(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_READ_AHEAD", 3)
    turns.show("a", "b", "c", "d", "e", "f")
    turns.step()
    assert turns.reading == ["a", "b", "c"]
    turns.finish("a", "b", "c")
    turns.step()
    assert turns.started == ["a", "b"], "there are two rows"
    assert turns.reading == ["d", "e"], "c waits for a row with its image in memory"


def test_a_text_overtakes_those_whose_images_are_not_read_yet(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_READ_AHEAD", 1)
    turns.show("a", "b")
    turns.generate("text")
    turns.step()
    assert turns.started == ["text"]
