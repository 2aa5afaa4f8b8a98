"""A request whose images are being read waits for them, holds up nobody, and takes no memory before it is its turn."""

import pytest

from gated_engine import GatedWorker
from lmwire_worker import scheduler
from worker_process import Event


class Turns:
    """A gated worker with a model, and what it starts."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.worker = GatedWorker(self.started.append)
        self.send({"id": "load", "cmd": "load", "path": "model"})
        self.worker.order("")
        self.worker.order("done")
        self.worker.events.take()
        self.started.clear()

    def send(self, command: Event) -> list[Event]:
        """What comes of a command at once."""
        self.worker.events.take()
        self.worker.session.serve(command, 10)
        return self.worker.events.take()

    def generate(self, *prompts: str) -> None:
        for prompt in prompts:
            self.send({"id": prompt, "cmd": "generate", "prompt": prompt})

    def show(self, *images: str) -> None:
        for image in images:
            content = [{"type": "image", "media": {"data": image}}]
            self.send({"id": image, "cmd": "chat", "messages": [{"role": "user", "content": content}]})

    def finish(self, *images: str) -> None:
        for image in images:
            self.worker.gatherings[image].finish()

    def go_on(self, order: str = "none") -> list[Event]:
        self.worker.order(order)
        return self.worker.events.take()

    @property
    def reading(self) -> list[str]:
        return [name for name, gathering in self.worker.gatherings.items() if not gathering.done]


@pytest.fixture
def turns() -> Turns:
    return Turns()


def test_it_starts_when_its_images_are_there(turns: Turns) -> None:
    turns.show("a")
    turns.go_on()
    assert (turns.worker.engine, turns.reading, turns.started) == ("paused", ["a"], [])
    turns.finish("a")
    turns.go_on()
    assert (turns.worker.engine, turns.started) == ("step", ["a"])


def test_others_overtake_it(turns: Turns) -> None:
    turns.show("a", "b")
    turns.generate("text")
    turns.go_on()
    assert turns.started == ["text"]
    turns.finish("b")
    turns.go_on()
    assert turns.started == ["text", "b"]


def test_a_load_waits_for_it(turns: Turns) -> None:
    turns.show("a")
    turns.send({"id": "load", "cmd": "load", "path": "other"})
    turns.go_on()
    turns.finish("a")
    turns.go_on()
    assert turns.started == ["a"]
    turns.go_on("all")
    assert turns.started == ["a", "other"]


def test_cancelled_while_it_is_read_it_ends_at_once(turns: Turns) -> None:
    turns.show("a")
    turns.go_on()
    events = turns.send({"id": "cancel", "cmd": "cancel", "target": "a"})
    assert [(event["id"], event.get("finish_reason")) for event in events] == [("cancel", None), ("a", "cancelled")]
    turns.go_on()
    assert turns.worker.engine == "idle"
    turns.finish("a")  # too late
    turns.generate("text")
    turns.go_on()
    assert turns.started == ["text"]


def test_only_so_many_are_read_ahead(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_READ_AHEAD", 3)
    turns.show("a", "b", "c", "d", "e", "f")
    turns.go_on()
    assert turns.reading == ["a", "b", "c"]
    turns.finish("a", "b", "c")
    turns.go_on()
    assert turns.started == ["a", "b"], "there are two rows"
    assert turns.reading == ["d", "e"], "c waits for a row with its image in memory"


def test_a_text_overtakes_those_whose_images_are_not_read_yet(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_READ_AHEAD", 1)
    turns.show("a", "b")
    turns.generate("text")
    turns.go_on()
    assert turns.started == ["text"]
