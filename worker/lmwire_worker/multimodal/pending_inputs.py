"""Media inputs that are being built from decoded media, within a memory of their own."""

import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Final

from lmwire_protocol import RequestError

from ..media import CachedMedia, Image, MediaRef, PendingMedia, Sound
from ..media.media_error import MediaError
from .media_input import MediaInput

MAX_REQUEST_BYTES: Final = 2 * 2**30
"""Maximum size of the inputs of one request, in bytes. A processor can make a large input of a small image."""
MAX_WAITING_BYTES: Final = 2**30
"""Size of the inputs of waiting requests, in bytes, from which no further inputs are built."""

Read = Callable[[Callable[[], None]], PendingMedia]
"""Starts to read a request's media. Calls its argument from another thread once all are read, or one has failed."""


class InputThread:
    """The thread that builds inputs, those of one request at a time. Processors are written for one thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "media-inputs")
        self._bytes = 0
        """Size of the inputs of waiting requests, as far as the thread knows."""
        self._freed: SimpleQueue[int] = SimpleQueue()
        """Sizes of inputs that no request waits with any more. Destructors fill it."""

    def submit(self, pending: "weakref.ref[PendingInputs]") -> None:
        """Build a request's inputs, unless it is dropped before its turn."""
        with suppress(RuntimeError):  # the model was closed
            self._thread.submit(self._build, pending)

    def close(self) -> None:
        """Stop the thread. No request may be running."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._freed.put(2**62)

    def _build(self, reference: "weakref.ref[PendingInputs]") -> None:
        self._wait_for_memory()
        if (pending := reference()) is not None:  # a cancelled request needs no inputs
            pending.build()
            self._bytes += pending.size
            weakref.finalize(pending, self._freed.put, pending.size).atexit = False
            pending.report()

    def _wait_for_memory(self) -> None:
        while self._bytes > MAX_WAITING_BYTES or not self._freed.empty():
            self._bytes -= self._freed.get()


class PendingInputs:
    """Media inputs that are being built; see `engine.preparation.Media`.

    Args:
        read: Starts to read the media.
        thread: Builds the inputs.
        build: Builds the input of one medium.
        refs: The media to read; at least one.
        ready: Called from another thread once all are built, or something has failed.
    """

    def __init__(
        self,
        read: Read,
        thread: InputThread,
        build: Callable[[Image | Sound], MediaInput],
        refs: Sequence[MediaRef],
        ready: Callable[[], None],
    ) -> None:
        self.done = False
        self.size = 0
        """Size of the inputs, in bytes."""
        self._build = build
        self._refs = refs
        self._ready = ready
        self._inputs: list[MediaInput] = []
        self._counted: set[MediaInput] = set()
        self._error: RequestError | None = None
        me: weakref.ref[PendingInputs] = weakref.ref(self)
        self._assigned = threading.Lock()
        with self._assigned:  # media from memory may be read before the reader has returned
            self._media: PendingMedia | None = read(lambda: thread.submit(me))

    def results(self) -> list[MediaInput]:
        """Return the media inputs, in the order of the references. Only when `done`.

        Raises:
            RequestError: A medium cannot be read, or this model cannot use it.
        """
        if self._error is not None:
            raise self._error
        return self._inputs

    def build(self) -> None:
        """Build all inputs. Called once all media are read."""
        with self._assigned:
            pending, self._media = self._media, None
        assert pending is not None
        try:
            media = [*reversed(pending.results())]
            del pending
            for ref in self._refs:  # each image is freed once its input is built
                self._add(ref, media.pop())
        except RequestError as error:
            self._error, self._inputs, self.size = error, [], 0

    def report(self) -> None:
        """Report that all inputs are built, or that something has failed."""
        self.done = True
        self._ready()

    def _add(self, ref: MediaRef, medium: Image | Sound | CachedMedia) -> None:
        media_input: MediaInput = medium.value if isinstance(medium, CachedMedia) else self._build_one(ref, medium)
        self._inputs.append(media_input)
        if media_input not in self._counted:  # an image that comes twice may be one input
            self._counted.add(media_input)
            self.size += media_input.nbytes
        if self.size > MAX_REQUEST_BYTES:
            problem = f"{ref.field}: brings the model's inputs to {self.size:,} bytes"
            problem += f"; at most {MAX_REQUEST_BYTES:,} are taken: send fewer or smaller ones, or in several requests"
            raise RequestError("out_of_memory", problem, field=ref.field)

    def _build_one(self, ref: MediaRef, medium: Image | Sound) -> MediaInput:
        try:
            return self._build(medium)
        except MediaError as error:
            raise RequestError(error.code, f"{ref.field}: {error}", field=ref.field) from None
        except BaseException as error:  # processors raise what their arithmetic leads to, and their tokenizers panic
            problem = f"{ref.field}: this model's {ref.kind} processor refuses it: {type(error).__name__}: {error}"
            raise RequestError("invalid_request", problem, field=ref.field) from None
