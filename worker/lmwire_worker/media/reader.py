"""Read the media of requests, so that no step of the engine waits for a disk, a network or a decoder.

One thread decides, and has all state. Other threads read and decode one file at a time, and send it what they found.
All files of a request are inspected before one is decoded: then the request's memory is known, and is taken at once. So
no request waits for memory while it has memory that another waits for.
"""

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

from lmwire_protocol import RequestError

from . import decoders
from .decoder_process import Declared
from .decoders import Decoder, File, Job, Recall, Work, request_error
from .images import Image
from .media_error import MediaError
from .media_refs import MediaRef
from .pending import Medium, PendingMedia
from .policy import MediaPolicy
from .sounds import SAMPLE_BYTES, Sound
from .turns import Grant, Turns

_FETCHERS: Final = 8
"""Fetchers have threads of their own, so that a slow network delays no other media."""
_INSPECTION_COST: Final = 2**16
"""Cost of an inspection beyond that of the file's bytes; see `Turns.enter`."""


class MediaReader:
    """Reads the media that the host's policy allows.

    Args:
        policy: The permissions and limits.
        resampled_rate: The rate to which all sounds are resampled, in samples per second, so that memory is reserved
            for it; 0 if they are not.
    """

    def __init__(self, policy: MediaPolicy, resampled_rate: int = 0) -> None:
        self.desk = _Desk(policy, resampled_rate)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._finalize = weakref.finalize(self, self.desk.inbox.put, None)

    def read(
        self,
        items: Sequence[MediaRef],
        ready: Callable[[], None],
        recall: Recall = lambda digest, kind: None,
    ) -> PendingMedia:
        """Start to read and decode media, and return at once.

        Args:
            items: The media to read.
            ready: Called from another thread once all are read, or one has failed. Never called without items.
            recall: Returns the cached value of a file, so that it is not decoded again; see `Recall`.
        """
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self.desk.run, name="media-desk", daemon=True)
                self._thread.start()
        pending = PendingMedia(len(items), ready, self)
        work = Work(items, recall, pending)
        inbox = self.desk.inbox
        # The queue may be filled by the destructor of anything: its `put` takes no lock that could be taken already.
        weakref.finalize(pending, inbox.put, (work, self.desk.drop)).atexit = False
        inbox.put((work, self.desk.accept))
        return pending

    @property
    def memory(self) -> int:
        """Bytes that all media of the worker have, which are decoded or will be next."""
        return self.desk.memory.used

    def close(self) -> None:
        """Stop the threads after their present work."""
        self._finalize()


_Message = tuple[Work, Callable[[Work], None]]


class _Desk:
    """The deciding thread, with its state.

    Args:
        policy: The permissions and limits.
        resampled_rate: See `MediaReader`.
    """

    def __init__(self, policy: MediaPolicy, resampled_rate: int) -> None:
        self.inbox: SimpleQueue[_Message | None] = SimpleQueue()
        """Messages to the thread; None at the end."""
        self._policy = policy
        self._resampled_rate = resampled_rate
        self._files: Turns[Work] = Turns(policy.file_memory_bytes, lambda work: work.dropped)
        self.memory: Turns[Work] = Turns(policy.memory_bytes, lambda work: work.dropped)
        """The memory for media that are decoded or will be next."""
        self._jobs: Turns[Job] = Turns(policy.decoder_memory_bytes, lambda job: job.work.dropped)
        self._sizes: dict[Job, Grant[Job]] = {}
        """The jobs in work, with their memory."""
        self.decoders = [Decoder(policy, self._report) for _ in range(decoders.DECODERS)]
        self._idle = [*self.decoders]
        self._fetchers = ThreadPoolExecutor(_FETCHERS, "fetch")

    def run(self) -> None:
        """Work until the end. The thread's body."""
        while (message := self.inbox.get()) is not None:
            work, act = message
            try:
                act(work)
            except BaseException as error:  # the thread goes on, and the request must not wait for ever
                self._fail(work, work.files[0], error)
            del message, work, act  # they refer to files
            self._proceed()
        self._fetchers.shutdown(wait=False, cancel_futures=True)
        for decoder in self.decoders:
            decoder.close()

    # Messages.

    def accept(self, work: Work) -> None:
        """Take a request's media."""
        if not work.unread:
            self._inspect_all(work)
            return
        need = min(self._file_need(work), self._files.largest)
        self._files.enter(work, need, need)

    def drop(self, work: Work) -> None:
        """End all work for a request, and free its memory."""
        if work.dropped:
            return
        work.dropped = True
        for decoder in work.decoders:
            decoder.abort()
        self.memory.give(work.memory, is_large=work.is_large["memory"])
        self._files.give(work.file_memory, is_large=work.is_large["file"])
        work.memory = work.file_memory = 0
        for file in work.files:
            file.content = None

    def _report(self, decoder: Decoder, job: Job, outcome: Image | Sound | RequestError | None) -> None:
        """Send the outcome of a job. Called from the decoder's thread."""
        self.inbox.put((job.work, partial(self._finish, decoder, job, outcome)))

    def _finish(self, decoder: Decoder, job: Job, outcome: Image | Sound | RequestError | None, work: Work) -> None:
        self._idle.append(decoder)
        work.decoders.discard(decoder)
        grant = self._sizes.pop(job)
        self._jobs.give(grant.size, is_large=grant.is_large)
        if work.dropped:
            return
        if isinstance(outcome, RequestError):
            self._refuse(work, job.file, outcome)
        elif outcome is None:
            self._note_inspected(work, job.file)
        else:
            self._hand_over(work, job.file, outcome)

    def _note_inspected(self, work: Work, file: File) -> None:
        """Note what a file declares. After a request's last file, let the request wait for its memory."""
        work.uninspected -= 1
        if file.ref.media.data is None:
            work.unread -= 1
            work.read_bytes += len(file.content or b"")
        if file.cached is not None:
            self._deliver(work, file, file.cached)
        self._shrink_file_memory(work)
        try:
            self._check_totals(work)
        except MediaError as error:
            self._fail(work, file, error)
            return
        need = sum(self._need(declared) for declared in self._declared(work))
        if work.uninspected or not need:
            return
        if need > self.memory.largest:
            problem = (
                f"brings the request's media to {need:,} bytes of memory; at most {self.memory.largest:,} are taken"
            )
            self._fail(work, file, MediaError(f"{problem}: make them smaller, or send them in several requests"))
            return
        self.memory.enter(work, need, need)

    def _hand_over(self, work: Work, file: File, medium: Image | Sound) -> None:
        """Deliver a decoded medium. Its memory is free again once nothing refers to its pixels or samples."""
        assert file.declared is not None
        need = self._need(file.declared)
        is_large = work.is_large["memory"]
        work.memory -= need
        owner = medium.pixels if isinstance(medium, Image) else medium.samples
        size = file.declared.result_bytes if isinstance(medium, Image) else medium.samples.nbytes
        extra = self._resampled_bytes(file.declared)
        if isinstance(medium, Sound) and extra:
            medium = Sound(medium.samples, medium.rate, medium.digest, reserved := _Reserved())
            self._free_with(reserved, extra, is_large=is_large)
        self._free_with(owner, size, is_large=is_large)
        self.memory.give(need - size - extra, is_large=is_large)
        self._deliver(work, file, medium)
        self._shrink_file_memory(work)

    # What is done next.

    def _proceed(self) -> None:
        """Start whatever can start now."""
        while grant := self._files.next():
            work = grant.item
            work.file_memory, work.is_large["file"] = grant.size, grant.is_large
            self._inspect_all(work)
        while grant := self.memory.next():
            work = grant.item
            work.memory, work.is_large["memory"] = grant.size, grant.is_large
            for file in work.files:
                if (declared := file.declared) is not None:
                    need = min(declared.work_bytes, self._jobs.largest)
                    work.finish = self._jobs.enter(Job(work, file), need, declared.result_bytes, work.finish)
        # One decoder is kept for small files.
        while self._idle and (job := self._jobs.next(large_too=len(self._idle) > 1)):
            decoder = self._idle.pop()
            self._sizes[job.item] = job
            job.item.work.decoders.add(decoder)
            decoder.start(job.item)

    def _inspect_all(self, work: Work) -> None:
        for file in work.files:
            if file.ref.media.url is None:
                self._inspect(file, work)
            else:
                self._fetchers.submit(self._fetch, work, file)

    def _inspect(self, file: File, work: Work) -> None:
        size = len(file.content or file.ref.media.data or b"")
        need = min(2 * size, self._jobs.largest)
        work.finish = self._jobs.enter(Job(work, file), need, _INSPECTION_COST + size, work.finish)

    def _fetch(self, work: Work, file: File) -> None:
        """Download a file. Runs in a thread of its own."""
        if work.dropped:
            return
        try:
            file.read(self._policy)
        except BaseException as error:
            self.inbox.put((work, partial(self._fail_late, file, error)))
        else:
            self.inbox.put((work, partial(self._inspect, file)))

    def _fail_late(self, file: File, error: BaseException, work: Work) -> None:
        self._fail(work, file, error)

    # Results and memory.

    def _deliver(self, work: Work, file: File, outcome: Medium | RequestError) -> None:
        file.content = None
        if (pending := work.pending()) is not None:
            pending.set_result(file.index, outcome)

    def _fail(self, work: Work, file: File, error: BaseException) -> None:
        self._refuse(work, file, request_error(file, error))

    def _refuse(self, work: Work, file: File, error: RequestError) -> None:
        self._deliver(work, file, error)
        self.drop(work)

    def _check_totals(self, work: Work) -> None:
        """Check the limits of one request.

        Raises:
            MediaError: A limit is exceeded.
        """
        policy = self._policy
        totals = {"image": 0, "sound": 0}
        for declared in self._declared(work):
            totals[declared.kind] += declared.units
        for what, total, most in (
            ("images to {:,} pixels", totals["image"], policy.max_request_pixels),
            ("sounds to {:,} samples", totals["sound"], policy.max_request_samples),
            ("files to {:,} bytes", work.read_bytes, policy.max_request_bytes),
        ):
            if total > most:
                raise MediaError(
                    f"brings the request's {what.format(total)}; at most {most:,} are taken: "
                    "make them smaller, or ask in several requests"
                )

    def _declared(self, work: Work) -> list[Declared]:
        return [file.declared for file in work.files if file.declared is not None]

    def _need(self, declared: Declared) -> int:
        return declared.result_bytes + self._resampled_bytes(declared)

    def _resampled_bytes(self, declared: Declared) -> int:
        if declared.kind == "image" or self._resampled_rate in (0, declared.rate):
            return 0
        return SAMPLE_BYTES * math.ceil(declared.units / declared.rate * self._resampled_rate)

    def _file_need(self, work: Work) -> int:
        """Return the memory that a request may need for files from disk and network."""
        present = sum(len(file.content or b"") for file in work.files if file.ref.media.data is None)
        return min(present + work.unread * self._policy.max_bytes, self._policy.max_request_bytes)

    def _shrink_file_memory(self, work: Work) -> None:
        if work.file_memory and (spare := work.file_memory - self._file_need(work)) > 0:
            work.file_memory -= spare
            self._files.give(spare, is_large=work.is_large["file"])

    def _free_with(self, owner: Any, size: int, *, is_large: bool) -> None:
        """Free memory once nothing refers to an object."""
        give = partial(_give, self.memory, size, is_large)
        weakref.finalize(owner, self.inbox.put, (_NOBODY, give)).atexit = False


class _Reserved:
    """The memory of a sound's resampled copy, for as long as this object lives."""


def _give(memory: Turns[Work], size: int, is_large: bool, work: Work) -> None:
    memory.give(size, is_large=is_large)


_NOBODY: Final = Work([], lambda digest, kind: None, PendingMedia(0, lambda: None))
"""The work of messages that belong to none."""
