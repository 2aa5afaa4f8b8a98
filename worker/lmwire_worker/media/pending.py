"""The media of one request while they are read."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lmwire_protocol import RequestError

from .images import Image
from .sounds import Sound


@dataclass(frozen=True, slots=True)
class CachedMedia:
    """An image or a sound that the runner has cached, so that it is not decoded again."""

    value: Any
    """The cached value, from the reader's `recall`."""
    digest: bytes
    """SHA-256 of the file."""


Medium = Image | Sound | CachedMedia


class PendingMedia:
    """The media of one request while they are read.

    Once this is dropped, as with a cancelled request, no further medium is read, and work in progress is ended.

    Args:
        count: Number of media.
        ready: Called from another thread once all are read, or one has failed.
        reader: The reader, which lives as long as it has work.
    """

    def __init__(self, count: int, ready: Callable[[], None], reader: object = None) -> None:
        self._reader = reader
        self._media: list[Medium | None] = [None] * count
        self._remaining = count
        self._error: RequestError | None = None
        self._ready = ready
        self._lock = threading.Lock()

    @property
    def done(self) -> bool:
        """True once all are read, or one has failed."""
        return self._remaining == 0 or self._error is not None

    def results(self) -> list[Medium]:
        """Return the media, in the order of the references. Only when `done`.

        Raises:
            RequestError: The first error, with the field of its medium.
        """
        if self._error is not None:
            raise self._error
        return [medium for medium in self._media if medium is not None]

    def set_result(self, index: int, outcome: Medium | RequestError) -> None:
        """Store a medium or its error. Called from the reader's threads.

        Args:
            index: Index of the reference.
            outcome: The medium, or its error.
        """
        with self._lock:
            if self.done:
                return
            self._remaining -= 1
            if isinstance(outcome, RequestError):
                self._error, self._media = outcome, []
            else:
                self._media[index] = outcome
            is_done = self.done
        if is_done:
            self._ready()
