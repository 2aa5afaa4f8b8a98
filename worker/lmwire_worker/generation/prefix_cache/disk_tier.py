"""Store entries of the prefix cache on disk, for later processes.

Threads read and write. An error costs only the entry that could not be stored.
"""

import contextlib
import hashlib
import os
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import Load, __version__

from ...engine.load_context import DiskCacheOptions
from ...models.weights import list_files
from ..caches import Slices, flatten_caches
from ..prefix_cache import cache_file
from .cache_file import FILE_NAME, ForeignFileError, Header, PackedArrays
from .store import RadixNode, common_length, concatenate, slice_tokens

MIN_SEGMENT_TOKENS: Final = 64
"""Minimum length of a segment, in tokens. Fewer tokens are computed as quickly as they are read."""


@dataclass(eq=False, slots=True)
class FileSegment:
    """A file, written or not."""

    tokens: list[int]
    """All tokens of the sequence."""
    start: int
    """Index of the first token whose slices the file holds."""
    has_snapshot: bool
    """True if the file holds a snapshot, after its last token."""
    path: Path | None = None
    """The file; None before it is written."""


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """The tokens of a segment that a read uses."""

    segment: FileSegment
    start: int
    stop: int


class SegmentIndex:
    """The segments by their first tokens, so that unknown sequences are recognized at once."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[int, ...], list[FileSegment]] = defaultdict(list)

    def __iter__(self) -> Iterator[FileSegment]:
        for group in self._groups.values():
            yield from group

    def add(self, segment: FileSegment) -> None:
        """Add a segment of at least `MIN_SEGMENT_TOKENS` tokens."""
        self._groups[_key(segment.tokens)].append(segment)

    def remove(self, segment: FileSegment) -> None:
        """Remove a segment, if the index has it."""
        group = self._groups.get(_key(segment.tokens), [])
        if segment in group:
            group.remove(segment)
        if not group:
            self._groups.pop(_key(segment.tokens), None)

    def covered(self, tokens: list[int]) -> int:
        """Return the number of leading tokens whose slices are known, written or not."""
        return end_of(_cover(self._reaches(tokens, written=False), len(tokens)))

    def chain(self, tokens: list[int], *, written: bool) -> list[SegmentSpan]:
        """Return the spans that make up the longest stored prefix from which a model can continue.

        Args:
            tokens: The sequence.
            written: Whether to use only files that are written.
        """
        reaches = self._reaches(tokens, written=written)
        if not any(segment.has_snapshot for _, segment in reaches):
            return _cover(reaches, len(tokens))
        ends = [segment for reach, segment in reaches if reach == len(segment.tokens)]
        for last in sorted(ends, key=lambda segment: len(segment.tokens), reverse=True):
            steps = _cover(reaches, last.start)
            if end_of(steps) == last.start:
                return [*steps, SegmentSpan(last, last.start, len(last.tokens))]
        return []

    def _reaches(self, tokens: list[int], *, written: bool) -> list[tuple[int, FileSegment]]:
        group = self._groups.get(_key(tokens), [])
        return [(common_length(segment.tokens, tokens, 0), segment) for segment in group if segment.path or not written]


def _cover(reaches: list[tuple[int, FileSegment]], stop: int) -> list[SegmentSpan]:
    steps: list[SegmentSpan] = []
    while (at := end_of(steps)) < stop:
        further = [(reach, segment) for reach, segment in reaches if segment.start <= at < reach]
        if not further:
            break
        reach, segment = max(further, key=lambda one: one[0])
        steps.append(SegmentSpan(segment, at, min(reach, stop)))
    return steps


def end_of(steps: list[SegmentSpan]) -> int:
    """Return the number of tokens that spans cover."""
    return steps[-1].stop if steps else 0


def _key(tokens: list[int]) -> tuple[int, ...]:
    return tuple(tokens[:MIN_SEGMENT_TOKENS])


MAX_PENDING_WRITES: Final = 8
"""Maximum number of segments that wait to be written: they take memory beyond the cache's budget."""
UNLOAD_TIMEOUT_S: Final = 10.0
"""Maximum time to finish the writes when a model is unloaded."""
EXIT_TIMEOUT_S: Final = 2.0
"""Maximum time to finish the writes when the process exits. Clients wait 5 s for that."""
TIME_DECAY: Final = 0.9
"""Factor of the remembered time of a read for each one that is left out. So a slow disk is tried again at times."""

ComputeSeconds = Callable[[int, int], float]
"""Predicts how long the model computes tokens, in seconds. Takes their number, and the number of tokens before them."""
RestoreSnapshot = Callable[[list[Any]], list[Any]]
"""Builds a snapshot from the states of the layers that cannot be sliced."""


def open_disk_tier(settings: DiskCacheOptions, fingerprint: str) -> "DiskTier | None":
    """Return the disk tier of one model; None if the directory cannot be used, which is logged.

    Args:
        settings: The directory, and its limit.
        fingerprint: See `DiskTier`.
    """
    try:
        return DiskTier(settings, fingerprint)
    except (OSError, ForeignFileError) as error:
        settings.log(f"nothing is kept on disk: {_reason(error)}")
        return None


class DiskTier:
    """The cache files of one model.

    Args:
        settings: The directory, and its limit.
        fingerprint: Hash of the model and of everything else that its caches depend on: 32 hexadecimal digits.

    Raises:
        OSError: the directory cannot be created.
        ForeignFileError: other users can change its content.
    """

    def __init__(self, settings: DiskCacheOptions, fingerprint: str) -> None:
        self._settings = settings
        self._fingerprint = fingerprint
        self._folder = cache_file.make_private(settings.directory / fingerprint)
        self._segments = SegmentIndex()
        self._lock = threading.Lock()
        """Protects the segments, which all threads use."""
        self._index()
        self._writer = ThreadPoolExecutor(1, "cache writer")
        self._reader = ThreadPoolExecutor(1, "cache reader")
        self._writes: set[Future[None]] = set()
        """The writes that are not finished."""
        self.token_s = 0.0
        """Time that the last read took for each token, in seconds; 0 before the first."""

    def write(self, tokens: list[int], node: RadixNode) -> None:
        """Start to write the new part of an entry. Does not block.

        Args:
            tokens: The tokens of the entry.
            node: The entry in the tree.
        """
        with self._lock:
            known = end_of(self._segments.chain(tokens, written=False))
            covered = self._segments.covered(tokens)
        if len(tokens) - known < MIN_SEGMENT_TOKENS or len(self._writes) >= MAX_PENDING_WRITES:
            return
        packed = PackedArrays()
        if node.slices:
            packed.add(node.slices_between(covered, len(tokens)) if covered < len(tokens) else [])
        else:
            covered = 0  # the sequence needs only its snapshot
        try:
            snapshot = None if node.snapshot is None else [packed.pack(cache.state) for cache in node.snapshot]
        except TypeError:
            return  # a model's own kind of cache
        if sum(array.nbytes for array in packed.arrays.values()) > self._settings.budget_bytes:
            return
        mx.async_eval(packed.arrays)
        segment = FileSegment(tokens, covered, has_snapshot=snapshot is not None)
        with self._lock:
            self._segments.add(segment)
        header = Header(self._fingerprint, tokens, covered, snapshot)
        write = self._writer.submit(self._write, segment, header, packed.arrays)
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)

    def start_reading(
        self, tokens: list[int], beyond: int, restore: RestoreSnapshot, compute_s: ComputeSeconds
    ) -> "Future[DiskRead | None] | None":
        """Start to read the longest stored prefix of tokens.

        Args:
            tokens: The tokens.
            beyond: Number of tokens that memory already holds. They are not read.
            restore: Builds a snapshot from states.
            compute_s: Predicts how long the model would compute the same tokens.

        Returns:
            None if the stored prefix is hardly longer than `beyond`, or sooner computed than read. The future's result
            is None if the files are damaged; they are ignored from then on.
        """
        stored = end_of(self._chain(tokens)) - beyond
        if stored < MIN_SEGMENT_TOKENS:
            return None
        if stored * self.token_s > compute_s(stored, beyond):
            self.token_s *= TIME_DECAY
            return None
        return self._reader.submit(self._read, tokens, beyond, restore)

    def is_current(self, read: "DiskRead") -> bool:
        """Return whether no file of a read has been removed since."""
        with self._lock:
            return all(step.segment in self._segments for step in read.spans)

    def discard_prefix(self, first: int) -> None:
        """Delete all sequences that begin with a token, after a failed verification."""
        with self._lock:
            lost = [segment for segment in self._segments if segment.tokens[0] == first]
        self._remove(lost)

    def clear(self) -> None:
        """Delete all files of this model."""
        with self._lock:
            lost = list(self._segments)
        self._remove(lost)

    def flush(self) -> None:
        """Wait for the writes, `EXIT_TIMEOUT_S` at most. Safe in any thread."""
        wait([*self._writes], EXIT_TIMEOUT_S)

    def close(self) -> None:
        """Wait for the writes, `UNLOAD_TIMEOUT_S` at most, and stop the threads."""
        wait([*self._writes], UNLOAD_TIMEOUT_S)
        for thread in (self._writer, self._reader):
            thread.shutdown(wait=False, cancel_futures=True)

    def _chain(self, tokens: list[int]) -> list[SegmentSpan]:
        with self._lock:
            return self._segments.chain(tokens, written=True)

    def _remove(self, segments: Sequence[FileSegment]) -> None:
        with self._lock:
            for segment in segments:
                self._segments.remove(segment)
                if segment.path is not None:
                    with contextlib.suppress(OSError):
                        segment.path.unlink()

    def _ignore(self, segment: FileSegment, reason: str) -> None:
        with self._lock:
            self._segments.remove(segment)
        self._settings.log(f"the cache file {segment.path} is ignored: {reason}")

    def _index(self) -> None:
        for path in sorted(self._folder.iterdir()):
            if not FILE_NAME.fullmatch(path.name):
                continue
            try:
                header = cache_file.read_header(path, self._fingerprint)
            except (OSError, ForeignFileError) as error:
                self._settings.log(f"the cache file {path} is ignored: {_reason(error)}")
            else:
                self._segments.add(FileSegment(header.tokens, header.start, header.snapshot is not None, path))

    # The reader's thread.

    def _read(self, tokens: list[int], beyond: int, restore: RestoreSnapshot) -> "DiskRead | None":
        while end_of(steps := self._chain(tokens)) >= beyond + MIN_SEGMENT_TOKENS:
            try:
                started = time.perf_counter()
                with mx.stream(mx.cpu):  # running answers need the device
                    read = self._assemble(steps, beyond, restore)
                self.token_s = (time.perf_counter() - started) / (read.length - beyond)
                return read
            except _Unreadable as error:
                self._ignore(error.segment, error.reason)
            except RuntimeError as error:
                self._settings.log(f"cache files are not read: {_reason(error)}")
                break
        return None

    def _assemble(self, steps: list[SegmentSpan], beyond: int, restore: RestoreSnapshot) -> "DiskRead":
        pieces: list[Slices] = []
        snapshot: list[Any] = []
        for step in steps:
            if step.stop <= beyond and step is not steps[-1]:
                continue
            header, packed = self._open(step.segment)
            try:
                slices = packed.slices(len(header.tokens) - header.start)
                snapshot = restore(packed.unpack(header.snapshot or []))
            except (ForeignFileError, LookupError, ValueError, TypeError) as error:
                raise _Unreadable(step.segment, _reason(error)) from None
            start = max(step.start, beyond)
            if start < step.stop:
                pieces.append(slice_tokens(slices, start - header.start, step.stop - header.start))
        slices = concatenate(pieces)
        mx.eval(slices)  # unevaluated arrays belong to their thread
        return DiskRead(steps, beyond, slices, snapshot)

    def _open(self, segment: FileSegment) -> tuple[Header, PackedArrays]:
        assert segment.path is not None
        try:
            found = cache_file.read(segment.path, self._fingerprint)
            os.utime(segment.path)  # the least recently used file is deleted first
        except (OSError, RuntimeError, ForeignFileError) as error:
            raise _Unreadable(segment, _reason(error)) from None
        if found[0].tokens != segment.tokens:
            raise _Unreadable(segment, "it has changed")
        return found

    # The writer's thread.

    def _write(self, segment: FileSegment, header: Header, arrays: dict[str, mx.array]) -> None:
        named = header.fingerprint.encode() + array("q", [segment.start, *segment.tokens]).tobytes()
        stem = hashlib.sha256(named).hexdigest()[:32]
        try:
            path = cache_file.write(self._folder, stem, header, arrays)
        except BaseException as error:
            with self._lock:
                self._segments.remove(segment)
            self._settings.log(f"a cache file is not written: {_reason(error)}")
            return
        with self._lock:
            if segment in self._segments:
                segment.path = path
            else:  # cleared in the meantime
                path.unlink(missing_ok=True)
        lost = cache_file.shrink(self._settings.directory, self._settings.budget_bytes)
        with self._lock:
            for gone in [segment for segment in self._segments if segment.path in lost]:
                self._segments.remove(gone)


class DiskRead:
    """The result of a read, as a `CacheSource`.

    Args:
        steps: The files, and the tokens taken from each.
        start: Index of the first token of the slices.
        slices: The slices.
        snapshot: The caches of the layers that cannot be sliced.
    """

    def __init__(self, steps: list[SegmentSpan], start: int, slices: Slices, snapshot: list[Any]) -> None:
        self.spans = steps
        self.start = start
        self.length = end_of(steps)
        """Number of tokens of the sequence."""
        self._slices = slices
        self._snapshot = snapshot

    def slices(self, start: int, stop: int) -> Slices:
        """See `CacheSource.slices`."""
        return slice_tokens(self._slices, start - self.start, stop - self.start)

    def snapshot(self) -> list[Any]:
        """See `CacheSource.snapshot`."""
        return self._snapshot


class _Unreadable(Exception):
    def __init__(self, segment: FileSegment, reason: str) -> None:
        super().__init__(reason)
        self.segment = segment
        self.reason = reason


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# What a model's caches depend on. They are reused only if its hash is the same.

LIBRARIES: Final = ("mlx", "mlx-lm", "mlx-vlm")
DIGITS: Final = 32


def fingerprint(network: Any, request: Load, folders: Sequence[Path]) -> str:
    """Return the fingerprint of a load: its files, KV cache options, library versions and device.

    Args:
        network: The network that runs.
        request: The load.
        folders: The folders of the model, its adapter and its draft model.
    """
    everything = (
        [(str(path), list_files(path)) for path in folders],
        request.kv_bits,
        request.dtype,
        [type(part).__name__ for part in flatten_caches(make_prompt_cache(network))],
        [__version__, *((name, _version(name)) for name in LIBRARIES)],
        sorted((key, value) for key, value in mx.device_info().items() if key in ("architecture", "device_name")),
        str(mx.default_device()),
    )
    return hashlib.sha256(repr(everything).encode()).hexdigest()[:DIGITS]


def _version(library: str) -> str | None:
    from importlib import metadata  # its import is slow, and few workers have a disk tier

    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:  # text needs no mlx-vlm
        return None
