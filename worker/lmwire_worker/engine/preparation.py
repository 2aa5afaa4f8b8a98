"""Preparation of requests in threads, so that disk, template, tokenizer and grammar delay no step of the engine.

Each kind of work has its threads. Slow work delays only its own kind, and a plain prompt never waits for another
request's grammar.
"""

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, Protocol, TypeVar

from ..sandbox.process import Cancellation

T = TypeVar("T")

MAX_PREPARATIONS: Final = 16
"""Maximum preparations of a kind at once, from their start to their request's: they take memory."""


class Media(Protocol):
    """Images and sounds that are being read."""

    def results(self) -> Sequence[Any]:
        """Return the images and sounds, in order; raise RequestError if one cannot be read."""
        ...


class Prepared(Generic[T]):
    """See `lmwire_worker.engine.interface.Preparation`. If it is dropped early, work that has not started never does.

    Args:
        ready: Called from another thread when it is done.
    """

    def __init__(self, ready: Callable[[], None]) -> None:
        self.done = False
        self.media: Media | None = None
        self.media_lock = threading.Lock()
        """Locked until `media` is set: media from memory may be read before that."""
        self.release: Callable[[], Any] = lambda: None
        """Lets another preparation of its kind start. Called when its request takes the result, or is dropped."""
        self._cancellation = Cancellation()
        self._ready = ready
        self._result: T | None = None
        self._error: BaseException | None = None

    def result(self) -> T:
        """Return the result, or raise the error of the work. Call it only when `done`."""
        self.release()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        """End the work, and do not start it: nobody waits for the result. Any thread may call it."""
        self._cancellation.set()

    def work(self, work: Callable[[Sequence[Any]], T]) -> None:
        """Do the work, in a thread of its kind."""
        with self.media_lock:
            media = self.media
        try:
            with self._cancellation.of_this_thread():
                self._cancellation.check()
                self._result = work(media.results() if media is not None else ())
        except BaseException as error:  # some are not of class Exception: panics in Rust, exits
            self.fail(error)
            return
        self.done = True
        self._ready()

    def fail(self, error: BaseException) -> None:
        """End the preparation with an error, which the engine's thread raises again for the request."""
        self._error = error.with_traceback(None)
        self.done = True
        self._ready()


class PreparationThreads:
    """Threads that prepare the requests of one model runner.

    Args:
        threads: The threads of each kind of work.
        scarce: Kinds with at most `MAX_PREPARATIONS` preparations at once.
    """

    def __init__(self, threads: Mapping[str, int], scarce: Sequence[str] = ()) -> None:
        self.threads = {kind: ThreadPoolExecutor(count, f"prepare-{kind}") for kind, count in threads.items()}
        self._slots = {kind: threading.Semaphore(MAX_PREPARATIONS) for kind in scarce}

    def start(
        self,
        kind: str,
        work: Callable[[Sequence[Any]], T],
        ready: Callable[[], None],
        read: Callable[[Callable[[], None]], Media | None] = lambda done: None,
    ) -> Prepared[T]:
        """Start to prepare a request.

        Args:
            kind: The kind of work.
            work: Makes the result from the request's images and sounds. It must not refer to the returned object.
            ready: Called from another thread when the work is done or has failed.
            read: Starts to read the images and sounds, and calls its argument at the end; returns None without media.
        """
        prepared: Prepared[T] = Prepared(ready)
        reference = weakref.ref(prepared)

        def submit() -> None:
            try:
                self.threads[kind].submit(_work, reference, work, self._slots.get(kind))
            except BaseException as error:  # the runner was closed meanwhile, or the system starts no further thread
                if (waiting := reference()) is not None:
                    waiting.fail(error)

        with prepared.media_lock:
            prepared.media = read(submit)
        if prepared.media is None:
            submit()
        return prepared

    def close(self) -> None:
        """End the threads after their present work."""
        for threads in self.threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


def _work(reference: Any, work: Callable[[Sequence[Any]], Any], slots: threading.Semaphore | None) -> None:
    if reference() is None:
        return
    if slots is not None:
        slots.acquire()
    prepared = reference()
    if prepared is None:  # its request was dropped
        if slots is not None:
            slots.release()
        return
    if slots is not None:
        prepared.release = weakref.finalize(prepared, slots.release)  # it acts once
    prepared.work(work)
