"""The threads that read, inspect and decode files, each with a decoder process, and the work that they share."""

import hashlib
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Final

from lmwire_protocol import RequestError

from .decoder_process import Declared, DecoderProcess
from .images import Image, decode_image, inspect_image
from .media_error import MediaError
from .media_refs import MediaKind, MediaRef
from .pending import CachedMedia, PendingMedia
from .policy import MediaPolicy
from .sounds import Sound, decode_sound, inspect_sound
from .sources import read_source

DECODERS: Final = 4
"""Maximum number of decoder processes."""

Recall = Callable[[bytes, MediaKind], Any | None]
"""Returns the cached value of a file by its digest and kind, or None. Called from the reader's threads."""


@dataclass(eq=False, slots=True)
class File:
    """A medium on its way. One thread at a time uses it."""

    index: int
    ref: MediaRef
    content: bytes | None = None
    """The file; None before it is read, and once it is not needed any more."""
    digest: bytes = b""
    cached: CachedMedia | None = None
    """The cached medium, which needs no decoding."""
    declared: Declared | None = None
    """Its declaration; None before it is inspected."""

    def read(self, policy: MediaPolicy) -> bytes:
        """Read the content, if it is not read yet, and return it.

        Raises:
            MediaError: It cannot be read.
        """
        if self.content is None:
            self.content = read_source(self.ref, policy)
        return self.content

    @property
    def field(self) -> str:
        """The path of the member that names the file, such as `audio.data`."""
        media = self.ref.media
        return f"{self.ref.field}.{next(name for name in ('data', 'path', 'url') if getattr(media, name) is not None)}"


class Work:
    """A request's media on their way. The reader's deciding thread alone changes it.

    Args:
        refs: The media.
        recall: See `Recall`.
        pending: Receives the media. It is not kept alive.
    """

    def __init__(self, refs: Sequence[MediaRef], recall: Recall, pending: PendingMedia) -> None:
        self.files = [File(index, ref) for index, ref in enumerate(refs)]
        self.recall = recall
        self.pending = weakref.ref(pending)
        self.dropped = False
        """True once nobody needs the media any more."""
        self.uninspected = len(self.files)
        """Number of files that are not inspected."""
        self.read_bytes = 0
        """Size of the files from disk and network that were read, in bytes."""
        self.unread = sum(file.ref.media.data is None for file in self.files)
        """Number of files from disk and network that are not read."""
        self.file_memory = 0
        """Memory that the request has for files from disk and network, in bytes."""
        self.memory = 0
        """Memory that the request has for media that are not decoded yet, in bytes."""
        self.is_large = {"file": False, "memory": False}
        """True for each memory that it takes as large work."""
        self.finish = 0.0
        """Virtual finish time of its last job."""
        self.decoders: set[Decoder] = set()
        """The decoders that work for it now."""


@dataclass(frozen=True, slots=True)
class Job:
    """A file to inspect, or to decode once it is inspected."""

    work: Work
    file: File

    def run(self, process: DecoderProcess, policy: MediaPolicy) -> Image | Sound | None:
        """Do the job, and return the decoded medium; None after an inspection.

        Raises:
            MediaError: The file cannot be read.
        """
        file = self.file
        if file.declared is not None:
            return self._decode(process, policy, file.declared)
        content = file.read(policy)
        file.digest = hashlib.sha256(content).digest()
        if (known := self.work.recall(file.digest, file.ref.kind)) is not None:
            file.cached = CachedMedia(known, file.digest)
            return None
        inspect = inspect_image if file.ref.kind == "image" else inspect_sound
        file.declared = inspect(process, content, policy, self._is_dropped)
        return None

    def _decode(self, process: DecoderProcess, policy: MediaPolicy, declared: Declared) -> Image | Sound:
        file, content = self.file, self.file.read(policy)
        if file.ref.kind == "image":
            return Image(decode_image(process, content, declared, self._is_dropped), file.digest)
        return Sound(*decode_sound(process, content, declared, policy, self._is_dropped), file.digest)

    def _is_dropped(self) -> bool:
        return self.work.dropped


class Decoder:
    """A thread with a decoder process. Both start at the first job.

    Args:
        policy: The limits.
        report: Receives each job with its outcome, in the thread.
    """

    def __init__(
        self, policy: MediaPolicy, report: "Callable[[Decoder, Job, Image | Sound | RequestError | None], None]"
    ) -> None:
        self._policy = policy
        self._report = report
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.process = DecoderProcess()

    def start(self, job: Job) -> None:
        """Start a job. The one before must have been reported."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="media", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def abort(self) -> None:
        """Kill the process, which ends the job in progress. The next job starts another process."""
        self.process.kill()

    def close(self) -> None:
        """End the thread after its job, and the process."""
        self._jobs.put(None)
        if self._thread is None:
            self.process.close()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._report(self, job, self._outcome(job))
            del job  # it refers to a file
        self.process.close()

    def _outcome(self, job: Job) -> Image | Sound | RequestError | None:
        try:
            return job.run(self.process, self._policy)
        except BaseException as error:  # the thread goes on
            return request_error(job.file, error)


def request_error(file: File, error: BaseException) -> RequestError:
    """Return the error of a request whose file cannot be read.

    Args:
        file: The file.
        error: The problem: a `MediaError`, or a bug.
    """
    field = file.field
    if isinstance(error, MediaError):
        return RequestError(error.code, f"{field}: {error}", field=field, retryable=error.retryable)
    return RequestError("internal", f"{field}: a bug in the worker: {type(error).__name__}: {error}", field=field)
