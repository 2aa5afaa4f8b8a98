"""Streams of responses, for threads."""

from collections.abc import Iterator
from queue import Empty, SimpleQueue
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


class ResponseStream(PendingRequest[Result], Generic[Item, Result]):
    """A response as it arrives: iterate over it, on one thread at a time.

    Exiting the `with` block early cancels the request. The stream keeps all items, read or not, without a bound.

    Args:
        connection: The connection to send the command on.
        command: The command.
        timeout: Longest time of the whole request, in seconds. None means no limit.
        on_progress: Called with each progress event.
    """

    def __init__(
        self, connection: Connection, command: Command, timeout: float | None, on_progress: OnProgress | None
    ) -> None:
        self._queue: SimpleQueue[Delivery] = SimpleQueue()
        super().__init__(connection, command, self._queue, timeout, on_progress)

    def __iter__(self) -> Iterator[Item]:
        """Iterate over the unread items.

        Raises:
            LmwireError: The request failed. The items before the failure come first.
        """
        while True:
            while self._read_count < len(self._received):
                self._read_count += 1
                yield self._received[self._read_count - 1]
            if self._ended:
                break
            self._wait()
        self._done_or_raise()

    def read_available(self) -> list[Item]:
        """Wait for an unread item, and return all that are there, to pass them on in one write.

        The list is empty when the request has ended.

        Raises:
            LmwireError: The request failed.
        """
        while not (items := self._take_unread()) and not self._ended:
            self._wait()
        if not items:
            self._done_or_raise()
        return items

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def wait(self) -> events.Done:
        """Wait for the end of the request, and return its `done`."""
        self.collect()
        return self._done_or_raise()

    def collect(self) -> list[Item]:
        """Wait for the end of the request, and return all items, including those that were read."""
        with self:
            for _ in self:
                pass
        return self._received

    def close(self) -> None:
        """Cancel the request if it has not ended, without waiting."""
        self._abandon(RuntimeError("the stream was closed before its end"))

    def _wait(self) -> None:
        """Wait for a delivery, and receive all that are there."""
        self._receive(self._next())
        while not self._queue.empty():
            self._receive(self._queue.get())

    def _next(self) -> Delivery:
        try:
            return self._queue.get(timeout=self._remaining_s())
        except Empty:
            raise self._fail_by_timeout() from None


class Stream(ResponseStream[TokenDelta | ToolCallDelta, events.ResultDone], Generic[Parsed]):
    """An answer as it is generated: iterate over its deltas, on one thread at a time.

    >>> with worker.chat("Who are you?", ignore_eos=True) as stream:
    ...     for delta in stream:
    ...         stream.cancel()
    >>> stream.result.finish_reason
    'cancelled'

    Exiting the `with` block early cancels the request. The stream keeps all deltas, read or not, without a bound.

    Args:
        connection: The connection to send the command on.
        command: The command.
        timeout: Longest time of the whole request, in seconds. None means no limit.
        on_progress: Called with each progress event.
        output: The type that answers are parsed as.
    """

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

    def text(self) -> str:
        """Wait for the end, and return the unread text of the first answer, without its reasoning."""
        with self:
            return "".join(delta.text for delta in self if delta.choice == 0)

    def answer(self) -> Answer[Parsed]:
        """Wait for the end, and return the whole answer, or the first of several. Includes deltas that were read."""
        return self.answers()[0]

    def answers(self) -> list[Answer[Parsed]]:
        """Wait for the end, and return the whole answers of all `n` choices. Includes deltas that were read."""
        return assemble_answers(self.collect(), self.result, self._output)


class Transcript(ResponseStream[events.Segment, events.TranscribeDone]):
    """A transcript as it is written: iterate over its segments, on one thread at a time."""

    def text(self) -> str:
        """Wait for the end, and return the unread text."""
        with self:
            return "".join(segment.text for segment in self)


class Speech(ResponseStream[events.Audio, events.SpeakDone]):
    """A speech as it is made: iterate over its parts, on one thread at a time; `speech_samples` reads a part."""

    def wav(self) -> bytes:
        """Wait for the end, and return the whole speech as the content of a WAV file. Includes parts that were read."""
        return assemble_wav(self.collect())
