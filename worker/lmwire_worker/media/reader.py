"""Reads the media of requests in threads: what a disk, a network or a decoder takes holds up no step of the engine."""

import hashlib
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol import RequestError

from .images import Image, PixelAllowance, decode_image
from .media_error import Problem
from .media_refs import Item, Kind
from .policy import Policy
from .sounds import Sound, decode_sound
from .sources import read_source

_DECODERS: Final = 4
_FETCHERS: Final = 8
"""Threads of their own: a slow network holds up no image that is there."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """An image or a sound that the lane knew already, and that was not decoded again."""

    value: Any
    """What `recall` gave for it."""
    digest: bytes
    """SHA-256 of the file."""


Medium = Image | Sound | Recalled


class Gathered:
    """The media of one request; see `lmwire_worker.engine.interface.Gathering`.

    When it is dropped before its end, as with a request that is cancelled, what was not begun of it never is.

    Args:
        count: How many there are.
        ready: Called from another thread when all are there, or as soon as one has failed.
    """

    def __init__(self, count: int, ready: Callable[[], None]) -> None:
        self._media: list[Medium | None] = [None] * count
        self._left = count
        self._error: RequestError | None = None
        self._ready = ready
        self._lock = threading.Lock()

    @property
    def done(self) -> bool:
        """Whether all are there, or one of them has failed."""
        return self._left == 0 or self._error is not None

    def results(self) -> list[Medium]:
        """What was read, in the items' order. Only when `done`.

        Raises:
            RequestError: with the field of the medium that failed first.
        """
        if self._error is not None:
            raise self._error
        return [medium for medium in self._media if medium is not None]

    def take(self, index: int, outcome: Medium | RequestError) -> None:
        """Called by the reader's threads."""
        with self._lock:
            if self.done:
                return
            self._left -= 1
            if isinstance(outcome, RequestError):
                self._error, self._media = outcome, []
            else:
                self._media[index] = outcome
            tell = self.done
        if tell:
            self._ready()


class Reader:
    """Reads what the host's policy allows.

    Args:
        policy: What may be read, and how much of it.
        recall: What the lane keeps of a file, by its digest and what it is taken for; None for nothing. Called from the
            reader's threads.
    """

    def __init__(self, policy: Policy, recall: Callable[[bytes, Kind], Any | None] = lambda digest, kind: None) -> None:
        self._policy = policy
        self._recall = recall
        self._decoders = ThreadPoolExecutor(_DECODERS, "media")
        self._fetchers = ThreadPoolExecutor(_FETCHERS, "fetch")

    def read(self, items: Sequence[Item], ready: Callable[[], None]) -> Gathered:
        """Starts to read and decode. Returns at once; `ready` is never called when there are no items."""
        gathered = Gathered(len(items), ready)
        allowance = PixelAllowance(self._policy.max_request_pixels)
        for index, item in enumerate(items):
            pool = self._decoders if item.media.url is None else self._fetchers
            pool.submit(self._read, weakref.ref(gathered), index, item, allowance)
        return gathered

    def close(self) -> None:
        """Ends the threads when they have done what they are at."""
        for pool in (self._decoders, self._fetchers):
            pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, reference: "weakref.ref[Gathered]", index: int, item: Item, allowance: PixelAllowance) -> None:
        gathered = reference()
        if gathered is None or gathered.done:
            return
        del gathered  # a request that is cancelled meanwhile needs it no more
        outcome = self._outcome(item, allowance)
        if (gathered := reference()) is not None:
            gathered.take(index, outcome)

    def _outcome(self, item: Item, allowance: PixelAllowance) -> Medium | RequestError:
        member = next(name for name in ("data", "path", "url") if getattr(item.media, name) is not None)
        field = f"{item.field}.{member}"
        try:
            content = read_source(item, self._policy)
            digest = hashlib.sha256(content).digest()
            if (known := self._recall(digest, item.kind)) is not None:
                return Recalled(known, digest)
            if item.kind == "image":
                return Image(decode_image(content, self._policy, allowance), digest)
            return Sound(*decode_sound(content, self._policy), digest)
        except Problem as problem:
            return RequestError(problem.code, f"{field}: {problem}", field=field, retryable=problem.retryable)
        except Exception as error:  # whoever waits for it must hear of it
            return RequestError(
                "internal", f"{field}: a bug in the worker: {type(error).__name__}: {error}", field=field
            )
