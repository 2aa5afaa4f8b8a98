"""Streams of responses, for asyncio tasks."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from lmwire_protocol import Command, events

from ..output_types import OutputType, Parsed
from ..protocol.deltas import TokenDelta, ToolCallDelta
from ..transport.connection import Connection, Delivery
from .answer import Answer, assemble_answers
from .pending_request import OnProgress, PendingRequest, Result
from .values import assemble_wav

Item = TypeVar("Item")


class AsyncResponseStream(PendingRequest[Result], Generic[Item, Result]):
    """A `ResponseStream` for one task at a time. Cancelling the task in an `async with` block cancels the request."""

    def __init__(
        self, connection: Connection, command: Command, timeout: float | None, on_progress: OnProgress | None
    ) -> None:
        self._queue: asyncio.Queue[Delivery] = asyncio.Queue()
        super().__init__(connection, command, self._queue, timeout, on_progress)

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Iterate as `ResponseStream` does."""
        while True:
            while self._read_count < len(self._received):
                self._read_count += 1
                yield self._received[self._read_count - 1]
            if self._ended:
                break
            await self._wait()
        self._done_or_raise()

    async def read_available(self) -> list[Item]:
        """See `ResponseStream.read_available`."""
        while not (items := self._take_unread()) and not self._ended:
            await self._wait()
        if not items:
            self._done_or_raise()
        return items

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    async def wait(self) -> events.Done:
        """See `ResponseStream.wait`."""
        await self.collect()
        return self._done_or_raise()

    async def collect(self) -> list[Item]:
        """See `ResponseStream.collect`."""
        async with self:
            async for _ in self:
                pass
        return self._received

    def close(self) -> None:
        """See `ResponseStream.close`."""
        self._abandon(RuntimeError("the stream was closed before its end"))

    async def _wait(self) -> None:
        """Wait for a delivery, and receive all that are there."""
        self._receive(await self._next())
        while not self._queue.empty():
            self._receive(self._queue.get_nowait())

    async def _next(self) -> Delivery:
        if self._deadline is None:  # a timer for each token would cost as much as the rest of this method
            return await self._queue.get()
        try:
            async with asyncio.timeout(self._remaining_s()):
                return await self._queue.get()
        except TimeoutError:
            raise self._fail_by_timeout() from None


class AsyncStream(AsyncResponseStream[TokenDelta | ToolCallDelta, events.ResultDone], Generic[Parsed]):
    """A `Stream` for one task at a time. Cancelling the task in an `async with` block cancels the request."""

    def __init__(
        self,
        connection: Connection,
        command: Command,
        timeout: float | None,
        on_progress: OnProgress | None,
        output: OutputType[Parsed] | None = None,
    ) -> None:
        self._output = output
        super().__init__(connection, command, timeout, on_progress)

    async def text(self) -> str:
        """See `Stream.text`."""
        async with self:
            return "".join([delta.text async for delta in self if delta.choice == 0])

    async def answer(self) -> Answer[Parsed]:
        """See `Stream.answer`."""
        return (await self.answers())[0]

    async def answers(self) -> list[Answer[Parsed]]:
        """See `Stream.answers`."""
        return assemble_answers(await self.collect(), self.result, self._output)


class AsyncTranscript(AsyncResponseStream[events.Segment, events.TranscribeDone]):
    """A `Transcript` for one task at a time."""

    async def text(self) -> str:
        """See `Transcript.text`."""
        async with self:
            return "".join([segment.text async for segment in self])


class AsyncSpeech(AsyncResponseStream[events.Audio, events.SpeakDone]):
    """A `Speech` for one task at a time."""

    async def wav(self) -> bytes:
        """See `Speech.wav`."""
        return assemble_wav(await self.collect())
