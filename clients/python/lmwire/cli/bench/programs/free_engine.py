"""A worker whose engine costs nothing, so that only the path of its events takes time: `python free_engine.py [MS]`.

Each step gives every request one word. The mock's own step costs as much as an event's whole way through the worker.
With MS, a step waits for a device that takes MS milliseconds, and that computes the next step meanwhile.
"""

import sys
from collections.abc import Callable
from itertools import cycle
from time import perf_counter, sleep
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
    """Gives each request one word a step, until it has `max_tokens` of them.

    Args:
        load: The load.
        step_s: Time that a device takes for a step, in seconds; 0 for no device.
    """

    def __init__(self, load: Load, step_s: float) -> None:
        super().__init__(load, 0.0, Script())
        self._step_s = step_s
        self._due = 0.0
        """When the device has computed the step that was started last."""
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
        if self._step_s:
            self._wait()
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

    def _wait(self) -> None:
        """Start the next step, which the device computes when it is free, and wait for the one before it."""
        now, due = perf_counter(), self._due
        self._due = max(now, due) + self._step_s
        sleep(max(0.0, due - now))


class FreeLoader(MockModelLoader):
    """Opens `FreeRunner`s."""

    step_s = 0.0
    """See `FreeRunner`."""

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> FreeRunner:
        """Return a runner. See `lmwire_worker.engine.interface.ModelLoader`."""
        release_current_model()
        return FreeRunner(request, self.step_s)


if __name__ == "__main__":
    loader = FreeLoader()
    loader.step_s = float(sys.argv[1]) / 1000 if sys.argv[1:] else 0.0
    WorkerProcess(isolate_stdio(), Log(), loader).run()
