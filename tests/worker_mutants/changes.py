"""Changes to a worker that several mutants share."""

import threading
from collections.abc import Callable
from typing import Any

from lmwire_protocol import events
from lmwire_worker.engine.interface import TokenDelta, ToolCallDelta
from lmwire_worker.mock.runner import MockRunner
from lmwire_worker.session import request_state, v1
from support.protocol.mutation import wrap


def change_deltas(change: Callable[[TokenDelta], object]) -> None:
    """Change every text before the worker writes it."""
    _change_on_its_way(TokenDelta, change)


def change_calls(change: Callable[[ToolCallDelta], object]) -> None:
    """Change every part of a call before the worker writes it."""
    _change_on_its_way(ToolCallDelta, change)


def change_results(change: Callable[[events.ResultDone], object]) -> None:
    """Change the `done` of every generation."""

    def changed(result: Any, *arguments: Any) -> events.ResultDone:
        done = result(*arguments)
        change(done)
        return done

    wrap(request_state.GenerationState, "done", changed)


def step_only_after(owner: Any, name: str) -> None:
    """Delay the engine's steps until a function was called, so that the engine finds all commands sent until then."""
    called = threading.Event()

    def call_and_signal(call: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        finally:
            called.set()

    def step_late(step: Any, self: MockRunner) -> Any:
        called.wait()
        return step(self)

    wrap(owner, name, call_and_signal)
    wrap(MockRunner, "step", step_late)


def _change_on_its_way(kind: type, change: Callable[[Any], object]) -> None:
    def write_changed(write: Any, self: Any, output: Any, request: Any, event: Any) -> None:
        if isinstance(event, kind):
            change(event)
        write(self, output, request, event)

    wrap(v1.EventWriterV1, "write", write_changed)
