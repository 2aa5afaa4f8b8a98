"""Read the media of requests in threads, so that no step of the engine waits for a disk, a network or a decoder."""

import hashlib
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol import RequestError

from .images import Image, PixelBudget, decode_image
from .media_error import MediaError
from .media_refs import MediaKind, MediaRef
from .policy import MediaPolicy
from .sounds import Sound, decode_sound
from .sources import read_source

_DECODERS: Final = 4
_FETCHERS: Final = 8
"""Fetchers have threads of their own, so that a slow network delays no other media."""


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

    Once this is dropped, as with a cancelled request, no further medium is read.

    Args:
        count: Number of media.
        ready: Called from another thread once all are read, or one has failed.
    """

    def __init__(self, count: int, ready: Callable[[], None]) -> None:
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


class MediaReader:
    """Reads the media that the host's policy allows.

    Args:
        policy: The permissions and limits.
        recall: Returns the cached value of a file by its digest and kind, or None. Called from the reader's threads.
    """

    def __init__(
        self, policy: MediaPolicy, recall: Callable[[bytes, MediaKind], Any | None] = lambda digest, kind: None
    ) -> None:
        self._policy = policy
        self._recall = recall
        self._decoders = ThreadPoolExecutor(_DECODERS, "media")
        self._fetchers = ThreadPoolExecutor(_FETCHERS, "fetch")

    def read(self, items: Sequence[MediaRef], ready: Callable[[], None]) -> PendingMedia:
        """Start to read and decode media, and return at once.

        Args:
            items: The media to read.
            ready: Called from another thread once all are read, or one has failed. Never called without items.
        """
        gathered = PendingMedia(len(items), ready)
        allowance = PixelBudget(self._policy.max_request_pixels)
        for index, item in enumerate(items):
            pool = self._decoders if item.media.url is None else self._fetchers
            pool.submit(self._read, weakref.ref(gathered), index, item, allowance)
        return gathered

    def close(self) -> None:
        """Stop the threads after their present work."""
        for pool in (self._decoders, self._fetchers):
            pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, reference: "weakref.ref[PendingMedia]", index: int, item: MediaRef, allowance: PixelBudget) -> None:
        gathered = reference()
        if gathered is None or gathered.done:
            return
        del gathered  # a request that is cancelled meanwhile drops it
        outcome = self._outcome(item, allowance)
        if (gathered := reference()) is not None:
            gathered.set_result(index, outcome)

    def _outcome(self, item: MediaRef, allowance: PixelBudget) -> Medium | RequestError:
        member = next(name for name in ("data", "path", "url") if getattr(item.media, name) is not None)
        field = f"{item.field}.{member}"
        try:
            content = read_source(item, self._policy)
            digest = hashlib.sha256(content).digest()
            if (known := self._recall(digest, item.kind)) is not None:
                return CachedMedia(known, digest)
            if item.kind == "image":
                return Image(decode_image(content, self._policy, allowance), digest)
            return Sound(*decode_sound(content, self._policy), digest)
        except MediaError as problem:
            return RequestError(problem.code, f"{field}: {problem}", field=field, retryable=problem.retryable)
        except Exception as error:  # the request must not wait forever
            return RequestError(
                "internal", f"{field}: a bug in the worker: {type(error).__name__}: {error}", field=field
            )
