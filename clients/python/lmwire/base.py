"""What the two faces share: how a worker is started, and what a caller sees of one request. Nothing here waits."""

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

from lmwire_protocol import Cancel, Command, Hello, __version__, events

from .answer import Answer, whole_answers
from .children import python_command
from .connection import Connection, Delivery, Mailbox, Patience
from .embeddings import whole_vectors
from .errors import LmwireError, NotServed, RequestFailed, RequestTimeout, StartFailed, WorkerLost
from .features import features_used
from .pieces import CallPiece, Piece
from .process import Reader

DEFAULT_COMMAND: Final = tuple(python_command("lmwire_worker"))
"""The command that starts this installation's own worker; further arguments may follow."""

OnProgress: TypeAlias = Callable[[events.Progress], None]
Result = TypeVar("Result", bound=events.Done)
_PIECES: Final = frozenset({Piece, CallPiece, events.Embedding, events.Segment})


class Tokens(NamedTuple):
    """What a prompt comes to."""

    ids: list[int]
    text: str
    """What the tokens stand for: a conversation as the chat template writes it."""


class Embeddings(NamedTuple):
    """What texts and images mean."""

    vectors: list["array[float]"]
    """One for each input, in their order: float32 ("f"), which `numpy.asarray` takes without a copy."""
    usage: events.Usage


class BaseWorker:
    """A worker's start and its facts.

    Tokens come at most every 30 ms, or every 50 ms while eight or more requests get some, all together that were made
    in between: to wake for each takes a small machine's time from the model. While another request waits for its first
    token they come sooner, and all else comes at once.

    Args:
        command: the program that is, or leads to, the worker: `["ssh", "-T", "host", "lmwire", "worker"]`,
            `["docker", "exec", "-i", "name", "lmwire", "worker"]`. Without it, this installation's own.
        watch_host: let the worker end when this process ends, even while something else holds its pipes open. Needs a
            worker below this process on this machine, so it is on only without `command`.
        on_stderr: called with each line that the worker writes to stderr, on a thread of this worker's: it must not
            wait for the worker, and an exception from it ends the worker. Without it the lines go nowhere but into
            `stderr_tail`.
        start_timeout: seconds until `hello` must be answered.
        patience: how long each step of `close` may take.
    """

    hello: events.HelloDone
    """What the worker said of itself; there once it has been started."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        watch_host: bool | None = None,
        on_stderr: Callable[[str], None] | None = None,
        start_timeout: float = 30.0,
        patience: Patience = Patience(),  # noqa: B008 (immutable)
    ) -> None:
        self._command = list(DEFAULT_COMMAND if command is None else command)
        self._watch_host = command is None if watch_host is None else watch_host
        self._on_stderr = on_stderr
        self._start_timeout = start_timeout
        self._patience = patience
        self._started: Connection | None = None

    @property
    def pid(self) -> int:
        """The process that was spawned."""
        return self._connection.pid

    @property
    def lost(self) -> WorkerLost | None:
        """Why the worker is gone; None while it lives."""
        return self._connection.lost

    @property
    def works(self) -> bool:
        """Return whether a request is in flight that the worker's engine serves; `ping` and `stats` are none."""
        return self._connection.works

    @property
    def stderr_tail(self) -> list[str]:
        """The last 64 lines of the worker's stderr."""
        return self._connection.stderr_tail

    @property
    def _connection(self) -> Connection:
        if self._started is None:
            raise RuntimeError("the worker has not been started: use `with`, or call start()")
        return self._started

    def _serving(self, command: Command) -> Connection:
        """The connection, if the worker at its end knows what the command asks for.

        Raises:
            NotServed: it does not.
        """
        connection = self._connection
        if used := features_used(command):
            missing = used.difference(self.hello.features)
            if missing:
                raise NotServed(self.hello.worker, sorted(missing))
        return connection

    def _spawn(self, deliver: Callable[[list[tuple[Mailbox, Delivery]]], None], reader: Reader | None = None) -> Hello:
        """Spawns the worker and returns what to say to it first."""
        if self._started is not None:
            raise RuntimeError("a worker can be started once; make another")
        try:
            self._started = Connection(self._command, deliver=deliver, on_stderr=self._on_stderr, reader=reader)
        except OSError as error:
            raise StartFailed(f"cannot run {self._command[0]!r}: {error}") from error
        return Hello(client=f"lmwire-python/{__version__}", host_pid=os.getpid() if self._watch_host else None)

    @contextmanager
    def _greeting(self) -> Iterator[None]:
        """Kills a worker that does not come up."""
        try:
            yield
        except LmwireError as error:
            self._connection.kill()
            raise StartFailed(f"{' '.join(self._command)!r} does not answer as a worker: {error}") from error
        except BaseException:
            self._connection.kill()
            raise


class Exchange(Generic[Result]):
    """One request as its caller sees it.

    Attributes:
        id: the request's id, which `cancel` takes.
    """

    def __init__(
        self,
        connection: Connection,
        command: Command,
        mailbox: Mailbox,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> None:
        self._connection = connection
        self._command = command
        self._timeout = timeout
        self._deadline = None if timeout is None else monotonic() + timeout
        self._on_progress = on_progress
        self._arrived: list[Any] = []
        self._read = 0
        self._done: events.Done | None = None
        self._failure: Exception | None = None
        self.id = connection.send(command, mailbox)

    @property
    def result(self) -> Result:
        """How the request ended: finish_reason ("other" for one that this version does not know), timings, and more.

        Raises:
            LmwireError: it failed.
            RuntimeError: it has not ended.
        """
        return cast(Result, self._outcome())

    def cancel(self) -> None:
        """Asks the worker to end this request; does not wait. What it has generated still comes, then the end."""
        if not self._ended and not self._command.out_of_band:
            with suppress(WorkerLost):
                self._connection.send(Cancel(target=self.id))

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call back once the worker has ended this request, whether or not what came of it was read.

        Args:
            callback: Called where the worker's output is read, in the event loop or on a thread, at once if the request
                has ended. It is not called for a request that was left before.
        """
        self._connection.when_ended(self.id, callback)

    @property
    def _ended(self) -> bool:
        return self._done is not None or self._failure is not None

    def _outcome(self) -> events.Done:
        if self._failure:
            raise self._failure
        if self._done is None:
            raise RuntimeError("the request has not ended: read it to its end first")
        return self._done

    def _answers(self) -> list[Answer]:
        return whole_answers(self._arrived, cast(events.ResultDone, self.result))

    def _tokens(self) -> Tokens:
        pieces = [piece for piece in self._arrived if isinstance(piece, Piece)]
        ids = [token_id for piece in pieces for token_id in piece.token_ids]
        return Tokens(ids, "".join(piece.token for piece in pieces))

    def _embeddings(self) -> Embeddings:
        done = cast(events.EmbedDone, self._outcome())
        return Embeddings(whole_vectors(self._arrived, done.count), done.usage)

    def _take(self, delivery: Delivery) -> None:
        """Sorts what a read brought: the end, the progress, the pieces."""
        if isinstance(delivery, LmwireError):
            self._failure = delivery
            return
        last = delivery[-1]
        if isinstance(last, events.Done):
            self._done = last
        elif isinstance(last, events.Error):
            self._failure = RequestFailed(last)
        self._arrived += [event for event in delivery if type(event) in _PIECES]
        if self._on_progress:
            for event in delivery:
                if isinstance(event, events.Progress):
                    self._on_progress(event)

    def _unread(self) -> list[Any]:
        """What has arrived and was not returned before."""
        unread = self._arrived[self._read :]
        self._read += len(unread)
        return unread

    def _remaining(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - monotonic())

    def _time_out(self) -> RequestTimeout:
        failure = RequestTimeout(self._command.name, self._timeout or 0.0)
        self._leave(failure)
        return failure

    def _leave(self, why: Exception) -> None:
        """Ends the caller's part: the request is cancelled, and its id stays taken until its terminal."""
        if not self._ended:
            self._connection.abandon(self.id)  # first: nobody reads how the cancel ends it
            self.cancel()
            self._failure = why
