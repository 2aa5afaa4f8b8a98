"""A stepped worker with a model, for tests of the order in which requests start."""

from support.process.worker_process import Event
from support.runners.stepped_engine import SteppedWorker


class Turns:
    """The worker, and the requests that it has started."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.worker = SteppedWorker(self.started.append)
        self.send({"id": "load", "cmd": "load", "path": "model"})
        self.worker.order("")
        self.worker.order("done")
        self.worker.events.take()
        self.started.clear()

    def send(self, command: Event) -> list[Event]:
        """Send a command, and return its immediate events."""
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
        """Complete the reading of these images."""
        for image in images:
            self.worker.gatherings[image].finish()

    def step(self, order: str = "none") -> list[Event]:
        """Let the engine run until it stops again, and return its events."""
        self.worker.order(order)
        return self.worker.events.take()

    @property
    def reading(self) -> list[str]:
        return [name for name, gathering in self.worker.gatherings.items() if not gathering.done]

    def counts(self) -> tuple[int, int]:
        """Return the numbers of active and of queued requests."""
        (pong,) = self.send({"id": "ping", "cmd": "ping"})
        return pong["active"], pong["queued"]
