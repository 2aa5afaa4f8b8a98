"""A conversation with a worker: what was said so far, and the next answer."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import lmwire
from lmwire_protocol import Message
from lmwire_protocol.events import Progress, ResultDone

from .display import Plain, display
from .progress import LoadProgress


class Stopped(Exception):
    """The person stopped the answer; the worker has ended it."""


class Talk:
    """Owns the worker and the messages. Entering starts the worker, leaving ends it.

    An event loop runs only while there is something to wait for, so that Ctrl-C means what `asyncio.Runner` makes of
    it: the first one cancels the answer, with the worker told of it; a second one, before that is done, leaves.

    Args:
        command: what runs the worker; None for one on this machine.
        system: the system message.
        fields: what every request has besides its messages.
    """

    def __init__(self, command: Sequence[str] | None, system: str | None, fields: dict[str, Any]) -> None:
        self._runner = asyncio.Runner()
        self._worker = lmwire.AsyncWorker(command)
        self._fields = fields
        self._system = [Message("system", system)] if system else []
        self._messages = [*self._system]

    def __enter__(self) -> Self:
        self._runner.__enter__()
        self._runner.run(self._worker.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self._worker.__aexit__(kind, error, trace))
        finally:
            self._runner.close()

    def load(self, model: str) -> None:
        """Loads the model, with its progress on stderr."""
        with LoadProgress() as progress:
            self._runner.run(self._load(model, progress))

    def answer(self, prompt: str) -> ResultDone:
        """Says `prompt`, shows the answer and remembers both.

        Raises:
            Stopped: what came of the answer is remembered.
            RequestFailed: the worker refused it; nothing is remembered.
        """
        messages = [*self._messages, Message("user", prompt)]
        pieces: list[str] = []
        try:
            with display() as shown:
                return self._runner.run(self._answer(messages, pieces, shown))
        finally:
            if pieces:
                self._messages = [*messages, Message("assistant", "".join(pieces))]

    def forget(self) -> None:
        """Begins anew, with the system message alone."""
        self._messages = [*self._system]

    async def _load(self, model: str, progress: LoadProgress) -> None:
        def show(event: Progress) -> None:
            progress.show(event.stage, event.current, event.total, event.unit)

        await self._worker.load(model, on_progress=show)

    async def _answer(self, messages: list[Message], pieces: list[str], shown: Plain) -> ResultDone:
        try:
            async with self._worker.chat(messages, **self._fields) as stream:
                async for piece in stream:
                    pieces.append(piece.text)
                    shown.show(piece.text)
                return stream.result
        except asyncio.CancelledError:
            raise Stopped from None
