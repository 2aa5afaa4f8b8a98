"""A request whose images are being read waits for them, holds up nobody."""

import weakref

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


def test_the_preparation_of_a_cancelled_request_ends_though_the_engine_is_in_a_step(turns: Turns) -> None:
    turns.generate("text")
    turns.step()
    turns.show("a")
    turns.step()
    preparation = weakref.ref(turns.worker.gatherings.pop("a"))
    turns.send({"id": "cancel", "cmd": "cancel", "target": "a"})
    assert preparation() is None


def test_a_text_overtakes_those_whose_images_are_not_read_yet(turns: Turns) -> None:
    turns.show("a", "b")
    turns.generate("text")
    turns.step()
    assert turns.started == ["text"]
