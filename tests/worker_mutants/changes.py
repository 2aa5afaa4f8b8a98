"""What several mutants do to a worker."""

import threading
from collections.abc import Callable
from typing import Any

from lmwire_protocol import events
from lmwire_worker.engine.interface import TokenDelta, ToolCallDelta
from lmwire_worker.mock.runner import MockRunner
from lmwire_worker.session import request_state, v1
from mutation import wrap


def change_pieces(change: Callable[[TokenDelta], object]) -> None:
    """Has every piece of text changed on its way out."""
    _change_on_its_way("tokens", change)


def change_calls(change: Callable[[ToolCallDelta], object]) -> None:
    """Has every piece of a call changed on its way out."""
    _change_on_its_way("call", change)


def change_results(change: Callable[[events.ResultDone], object]) -> None:
    """Has the `done` of every generation changed."""

    def changed(result: Any, *arguments: Any) -> events.ResultDone:
        done = result(*arguments)
        change(done)
        return done

    wrap(request_state.Request, "result", changed)


def step_only_after(owner: Any, name: str) -> None:
    """Lets the engine make no step before something has been called, so that it meets what was sent until then."""
    called = threading.Event()

    def call_and_tell(call: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        finally:
            called.set()

    def step_late(step: Any, self: MockRunner) -> Any:
        called.wait()
        return step(self)

    wrap(owner, name, call_and_tell)
    wrap(MockRunner, "step", step_late)


def _change_on_its_way(voice: str, change: Callable[[Any], object]) -> None:
    def show_changed(show: Any, self: Any, outbox: Any, request: Any, piece: Any) -> None:
        change(piece)
        show(self, outbox, request, piece)

    wrap(v1._Voice, voice, show_changed)
