"""Prepares requests in threads: what a disk, a template, a tokenizer or a grammar takes holds up no step of the engine.

Each kind of work has threads of its own. So what takes long holds up only its like, and a plain prompt never waits for
a stranger's grammar.
"""

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, Protocol, TypeVar

T = TypeVar("T")

MAX_PREPARATIONS: Final = 16
"""Preparations of a kind that may be there at once, from their work's start to their request's: they take memory."""


class Media(Protocol):
    """Images and sounds that are being read."""

    def results(self) -> Sequence[Any]:
        """Return them, in order; raise RequestError where one cannot be had."""
        ...


class Prepared(Generic[T]):
    """See `lmwire_worker.engine.interface.Preparation`. When it is dropped early, what has not begun of it never does.

    Args:
        ready: Called from another thread when it is done.
    """

    def __init__(self, ready: Callable[[], None]) -> None:
        self.done = False
        self.media: Media | None = None
        self.media_lock = threading.Lock()
        """Held until `media` is set: what comes from memory may be read before that."""
        self.release: Callable[[], Any] = lambda: None
        """Lets another preparation of its kind begin. Called when its request has taken the result, or is dropped."""
        self._ready = ready
        self._result: T | None = None
        self._error: Exception | None = None

    def result(self) -> T:
        """Return what was prepared, or raise what went wrong. Only when `done`."""
        self.release()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def work(self, work: Callable[[Sequence[Any]], T]) -> None:
        """Do the work, in a thread of its kind."""
        with self.media_lock:
            media = self.media
        try:
            self._result = work(media.results() if media is not None else ())
        except Exception as error:  # the engine's thread raises it again, for the request
            self._error = error.with_traceback(None)
        self.done = True
        self._ready()


class Preparer:
    """Threads that prepare one lane's requests.

    Args:
        threads: The threads of each kind of work.
        scarce: Kinds of which only `HELD` may be there at once.
    """

    def __init__(self, threads: Mapping[str, int], scarce: Sequence[str] = ()) -> None:
        self._threads = {kind: ThreadPoolExecutor(count, f"prepare-{kind}") for kind, count in threads.items()}
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
            kind: Of the work.
            work: Makes the result of the request's images and sounds. It must not refer to what is returned here.
            ready: Called from another thread when all is done, or something has failed.
            read: Starts to read the images and sounds, and calls its argument when they are there; None for none.
        """
        prepared: Prepared[T] = Prepared(ready)
        reference = weakref.ref(prepared)

        def submit() -> None:
            with contextlib.suppress(RuntimeError):  # the lane has been closed meanwhile
                self._threads[kind].submit(_work, reference, work, self._slots.get(kind))

        with prepared.media_lock:
            prepared.media = read(submit)
        if prepared.media is None:
            submit()
        return prepared

    def close(self) -> None:
        """End the threads when they have done what they are at."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)


def _work(reference: Any, work: Callable[[Sequence[Any]], Any], slots: threading.Semaphore | None) -> None:
    if reference() is None:
        return
    if slots is not None:
        slots.acquire()
    prepared = reference()
    if prepared is None:  # nobody waits for it any more
        if slots is not None:
            slots.release()
        return
    if slots is not None:
        prepared.release = weakref.finalize(prepared, slots.release)  # it acts once
    prepared.work(work)
