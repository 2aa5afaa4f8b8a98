"""One request as its caller sees it, for both the threaded and the asyncio API. Nothing here waits."""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from lmwire_protocol import Cancel, Command, events

from ..errors import LmwireError, RequestTimeout, WorkerLost, request_failed
from ..protocol.deltas import TokenDelta, ToolCallDelta
from ..transport.connection import Connection, Delivery, ResponseQueue

OnProgress: TypeAlias = Callable[[events.Progress], None]
Result = TypeVar("Result", bound=events.Done)
_COLLECTED: Final = frozenset({TokenDelta, ToolCallDelta, events.Embedding, events.Segment, events.Audio})
"""Types of the events that a response consists of."""


class PendingRequest(Generic[Result]):
    """One request, from its command to its terminal.

    Args:
        connection: The connection to send the command on.
        command: The command.
        queue: Gets the request's events.
        timeout: Longest time of the whole request, in seconds. None means no limit.
        on_progress: Called with each progress event.

    Attributes:
        id: The request's id, which `cancel` takes.
    """

    def __init__(
        self,
        connection: Connection,
        command: Command,
        queue: ResponseQueue,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> None:
        self._connection = connection
        self._command = command
        self._timeout = timeout
        self._deadline = None if timeout is None else monotonic() + timeout
        self._on_progress = on_progress
        self._received: list[Any] = []
        self._read_count = 0
        self._done: events.Done | None = None
        self._failure: Exception | None = None
        self.id = connection.send(command, queue)

    @property
    def result(self) -> Result:
        """Return the request's `done`, with its finish_reason ("other" for an unknown one), timings and more.

        Raises:
            LmwireError: The request failed.
            RuntimeError: The request has not ended.
        """
        return cast(Result, self._done_or_raise())

    def cancel(self) -> None:
        """Ask the worker to end this request, without waiting. Events that are already generated still follow."""
        if not self._ended and not self._command.out_of_band:
            with suppress(WorkerLost):
                self._connection.send(Cancel(target=self.id))

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call back once the worker has ended this request, even if its events are not read.

        Args:
            callback: Called where the worker's output is read: in the event loop or on a thread. Called at once if the
                request has ended, and never if the caller has abandoned it.
        """
        self._connection.when_ended(self.id, callback)

    @property
    def _ended(self) -> bool:
        return self._done is not None or self._failure is not None

    def _done_or_raise(self) -> events.Done:
        if self._failure:
            raise self._failure
        if self._done is None:
            raise RuntimeError("the request has not ended: read it to its end first")
        return self._done

    def _receive(self, delivery: Delivery) -> None:
        """Sort the events of a delivery: parts of the response, progress, and the terminal."""
        if isinstance(delivery, LmwireError):
            self._failure = delivery
            return
        last = delivery[-1]
        if isinstance(last, events.Done):
            self._done = last
        elif isinstance(last, events.Error):
            self._failure = request_failed(last)
        self._received += [event for event in delivery if type(event) in _COLLECTED]
        if self._on_progress:
            for event in delivery:
                if isinstance(event, events.Progress):
                    self._on_progress(event)

    def _take_unread(self) -> list[Any]:
        """Return the received parts that were not returned before."""
        unread = self._received[self._read_count :]
        self._read_count += len(unread)
        return unread

    def _remaining_s(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - monotonic())

    def _fail_by_timeout(self) -> RequestTimeout:
        failure = RequestTimeout(self._command.name, self._timeout or 0.0)
        self._abandon(failure)
        return failure

    def _abandon(self, reason: Exception) -> None:
        """End the caller's part: cancel the request, whose id stays taken until its terminal."""
        if not self._ended:
            self._connection.abandon(self.id)  # before the cancel, because nobody reads the terminal
            self.cancel()
            self._failure = reason
