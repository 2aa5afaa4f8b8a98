"""A conversation with a worker: what was said so far, and the next answer."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import lmwire
from lmwire.answer import whole_answer
from lmwire.options import MediaPartDict
from lmwire_protocol.events import Progress, ResultDone

from .display import Plain, display
from .progress import LoadProgress


class Stopped(Exception):
    """The person stopped the answer; the worker has ended it."""


class Reply(NamedTuple):
    """What an answer leaves to do and to say, when its text has been shown."""

    calls: list[lmwire.ToolCall]
    """Tool calls; their results are the next thing to say."""
    result: ResultDone


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
        self._system: list[lmwire.MessageDict] = [{"role": "system", "content": system}] if system else []
        self._messages = [*self._system]
        self._attached: list[MediaPartDict] = []

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

    def load(self, model: str, options: dict[str, Any]) -> None:
        """Loads the model, with its progress on stderr."""
        with LoadProgress() as progress:
            self._runner.run(self._load(model, options, progress))

    def answer(self, prompt: str) -> Reply:
        """Says `prompt`, shows the answer and remembers both.

        Raises:
            Stopped: what came of the answer's text is remembered.
            RequestFailed: the worker refused it; nothing is remembered.
        """
        return self.say([self.prompt(prompt)])

    def attach(self, part: MediaPartDict) -> None:
        """Shows an image, say, together with the next prompt."""
        self._attached.append(part)

    def prompt(self, text: str) -> lmwire.MessageDict:
        """The user's next message, with what is attached to it."""
        parts, self._attached = self._attached, []
        return {"role": "user", "content": [*parts, {"type": "text", "text": text}] if parts else text}

    def say(self, turn: Sequence[lmwire.MessageDict]) -> Reply:
        """The same for any messages, as the results of tool calls."""
        messages = [*self._messages, *turn]
        pieces: list[lmwire.Piece | lmwire.CallPiece] = []
        try:
            with display(formatted="format" not in self._fields) as shown:
                result = self._runner.run(self._answer(messages, pieces, shown))
                answer = whole_answer(pieces, result.finish_reason)
                for call in answer.tool_calls:
                    shown.call(call)
        except BaseException:
            # Calls without results would leave the conversation with an open end.
            if text := "".join(piece.text for piece in pieces):
                self._messages = [*messages, {"role": "assistant", "content": text}]
            raise
        self._messages = [*messages, answer.message]
        return Reply(answer.tool_calls, result)

    def forget(self) -> None:
        """Begins anew, with the system message alone."""
        self._messages = [*self._system]
        self._attached = []

    async def _load(self, model: str, options: dict[str, Any], progress: LoadProgress) -> None:
        def show(event: Progress) -> None:
            progress.show(event.stage, event.current, event.total, event.unit)

        await self._worker.load(model, on_progress=show, **options)

    async def _answer(
        self,
        messages: Sequence[lmwire.MessageDict],
        pieces: list[lmwire.Piece | lmwire.CallPiece],
        shown: Plain,
    ) -> ResultDone:
        try:
            async with self._worker.chat(messages, **self._fields) as stream:
                async for piece in stream:
                    pieces.append(piece)
                    if piece.reasoning:
                        shown.think(piece.reasoning)
                    if piece.text:
                        shown.show(piece.text)
                return stream.result
        except asyncio.CancelledError:
            raise Stopped from None
