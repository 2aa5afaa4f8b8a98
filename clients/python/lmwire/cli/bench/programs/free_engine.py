"""A worker whose engine costs nothing, so that only the path of its events takes time: `python free_engine.py`.

Each step gives every request one word. The mock's own step costs as much as an event's whole way through the worker.
"""

from collections.abc import Callable
from itertools import cycle
from typing import Final

from lmwire_protocol import Generate, Load
from lmwire_worker.engine.interface import (
    AdmittedRequest,
    InferenceCommand,
    Preparation,
    Report,
    RunnerEvent,
    TokenDelta,
)
from lmwire_worker.mock import MockModelLoader, MockRunner
from lmwire_worker.mock.scenario import Script
from lmwire_worker.process.stderr_log import Log
from lmwire_worker.process.stdio import isolate_stdio
from lmwire_worker.worker import WorkerProcess

WORDS: Final = ("one ", "two ", "three ", "four ")


class FreeRunner(MockRunner):
    """Gives each request one word a step, until it has `max_tokens` of them."""

    def __init__(self, load: Load) -> None:
        super().__init__(load, 0.0, Script())
        self._left: dict[int, int] = {}
        """The words that each request still gets, by its key."""
        self._words = cycle(enumerate(WORDS))

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """Take a `generate`. See `lmwire_worker.engine.interface.ModelRunner`."""
        assert isinstance(request, Generate) and request.max_tokens
        self._left[key] = request.max_tokens
        return AdmittedRequest(len(WORDS))

    def step(self) -> list[RunnerEvent]:
        """Return the next word for each request."""
        place, word = next(self._words)
        events: list[RunnerEvent] = []
        for key, left in list(self._left.items()):
            events.append(event := TokenDelta(key, word, [place], 1))
            self._left[key] = left - 1
            if left == 1:
                event.finish_reason = "length"
                del self._left[key]
        return events

    def remove(self, key: int) -> list[RunnerEvent]:
        """Drop a request."""
        del self._left[key]
        return []


class FreeLoader(MockModelLoader):
    """Opens `FreeRunner`s."""

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> FreeRunner:
        """Return a runner. See `lmwire_worker.engine.interface.ModelLoader`."""
        release_current_model()
        return FreeRunner(request)


if __name__ == "__main__":
    WorkerProcess(isolate_stdio(), Log(), FreeLoader()).run()
