"""A gated worker with a model, for tests of which request is begun when."""

from support.process.worker_process import Event
from support.runners.stepped_engine import SteppedWorker


class Turns:
    """The worker, and what it starts."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.worker = SteppedWorker(self.started.append)
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

    def generate(self, *prompts: str, n: int = 1) -> None:
        for prompt in prompts:
            self.send({"id": prompt, "cmd": "generate", "prompt": prompt, "n": n})

    def show(self, *images: str) -> None:
        for image in images:
            content = [{"type": "image", "media": {"data": image}}]
            self.send({"id": image, "cmd": "chat", "messages": [{"role": "user", "content": content}]})

    def finish(self, *images: str) -> None:
        """Says that these are read."""
        for image in images:
            self.worker.gatherings[image].finish()

    def step(self, order: str = "none") -> list[Event]:
        """What comes until the engine stops again."""
        self.worker.order(order)
        return self.worker.events.take()

    @property
    def reading(self) -> list[str]:
        return [name for name, gathering in self.worker.gatherings.items() if not gathering.done]

    def counts(self) -> tuple[int, int]:
        """Requests that are active, and queued."""
        (pong,) = self.send({"id": "ping", "cmd": "ping"})
        return pong["active"], pong["queued"]
