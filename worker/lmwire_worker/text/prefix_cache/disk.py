"""What is kept on disk of a model's prefix cache, for the next process.

A thread of its own writes. Whatever goes wrong costs no more than what would have been kept.
"""

import contextlib
import hashlib
import os
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Queue
from typing import Any, Final

import mlx.core as mx

from ..disk_settings import DiskSettings
from . import cache_file
from .cache_file import NAME, TEMPORARY, ForeignFileError, Header, Packed
from .segments import MINIMUM, Segment, Segments, Step
from .tree import Node, Slices

WAITING: Final = 8
"""Segments that wait to be written, at most: they hold memory beyond the cache's own budget."""
LAST_SECONDS: Final = 5.0
ABANDONED_SECONDS: Final = 3600.0
"""After so long nobody is still writing a file."""

Restore = Callable[[list[Any]], list[Any]]
"""Makes caches of layers that cannot be cut from their states, of which there are none when all can be."""


def open_disk(settings: DiskSettings, fingerprint: str) -> "Disk | None":
    """What is kept of one model; None when the directory cannot be used, and the log says why."""
    try:
        return Disk(settings, fingerprint)
    except (OSError, ForeignFileError) as error:
        settings.log(f"nothing is kept on disk: {_reason(error)}")
        return None


class Disk:
    """The files of one model, with all that they depend on.

    Args:
        settings: See there.
        fingerprint: 32 hexadecimal digits, of the model and of all else that its caches depend on.

    Raises:
        OSError: the directory cannot be made.
        ForeignFileError: others can change what is in it.
    """

    def __init__(self, settings: DiskSettings, fingerprint: str) -> None:
        self._settings = settings
        self._fingerprint = fingerprint
        self._folder = _private(settings.directory / fingerprint)
        self._segments = Segments()
        self._lock = threading.Lock()
        """For the segments, which both threads know."""
        self._index()
        self._queue: Queue[tuple[Segment, Header, dict[str, mx.array]] | None] = Queue(WAITING)
        self._thread: threading.Thread | None = None
        """Started for the first segment."""

    def keep(self, tokens: list[int], node: Node) -> None:
        """Hands over what the tree knows of tokens, to be written as far as it is new. Waits for nothing."""
        with self._lock:
            known = _end(self._segments.chain(tokens, written=False))
            covered = self._segments.covered(tokens)
        if len(tokens) - known < MINIMUM or self._queue.full():
            return
        packed = Packed()
        if node.slices:
            packed.add(_taken(node, covered, len(tokens)) if covered < len(tokens) else [])
        else:
            covered = 0  # nothing of the sequence is needed but its snapshot
        try:
            snapshot = None if node.snapshot is None else [packed.pack(cache.state) for cache in node.snapshot]
        except TypeError:
            return  # a model's own kind of cache, which cannot be written
        if sum(array.nbytes for array in packed.arrays.values()) > self._settings.budget_bytes:
            return
        mx.async_eval(packed.arrays)
        segment = Segment(tokens, covered, whole=snapshot is not None)
        with self._lock:
            self._segments.add(segment)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="disk cache", daemon=True)
            self._thread.start()
        self._queue.put((segment, Header(self._fingerprint, tokens, covered, snapshot), packed.arrays))

    def read(self, tokens: list[int], beyond: int, restore: Restore) -> "Read | None":
        """The longest known beginning of tokens, if it is much longer than `beyond`; without what is known up to there.

        Files that turn out to be damaged are ignored from then on.
        """
        while True:
            with self._lock:
                steps = self._segments.chain(tokens, written=True)
            if _end(steps) < beyond + MINIMUM:
                return None
            try:
                return self._read(steps, beyond, restore)
            except _Unreadable as error:
                self._ignore(error.segment, error.reason)

    def forget(self, first: int) -> None:
        """Removes all that begins with a token: a check found it to be wrong."""
        with self._lock:
            lost = [segment for segment in self._segments if segment.tokens[0] == first]
        self._remove(lost)

    def clear(self) -> None:
        """Removes all that is kept of this model."""
        with self._lock:
            lost = list(self._segments)
        self._remove(lost)

    def close(self) -> None:
        """Writes what waits, for some seconds at most."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(LAST_SECONDS)

    def _remove(self, segments: Sequence[Segment]) -> None:
        with self._lock:
            for segment in segments:
                self._segments.remove(segment)
                if segment.path is not None:
                    with contextlib.suppress(OSError):
                        segment.path.unlink()

    def _ignore(self, segment: Segment, reason: str) -> None:
        with self._lock:
            self._segments.remove(segment)
        self._settings.log(f"the cache file {segment.path} is ignored: {reason}")

    def _index(self) -> None:
        for path in sorted(self._folder.iterdir()):
            if not NAME.fullmatch(path.name):
                continue
            try:
                header = cache_file.read_header(path, self._fingerprint)
            except (OSError, ForeignFileError) as error:
                self._settings.log(f"the cache file {path} is ignored: {_reason(error)}")
            else:
                self._segments.add(Segment(header.tokens, header.start, header.snapshot is not None, path))

    def _read(self, steps: list[Step], beyond: int, restore: Restore) -> "Read":
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
                pieces.append(_cut(slices, start - header.start, step.stop - header.start))
        return Read(beyond, _end(steps), _joined(pieces), snapshot)

    def _open(self, segment: Segment) -> tuple[Header, Packed]:
        assert segment.path is not None
        try:
            found = cache_file.read(segment.path, self._fingerprint)
            os.utime(segment.path)  # the least recently used goes first
        except (OSError, RuntimeError, ForeignFileError) as error:
            raise _Unreadable(segment, _reason(error)) from None
        if found[0].tokens != segment.tokens:
            raise _Unreadable(segment, "it has changed")
        return found

    # The thread.

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            self._write(*job)
            del job  # while it waits for the next one it must not hold this one's arrays

    def _write(self, segment: Segment, header: Header, arrays: dict[str, mx.array]) -> None:
        named = header.fingerprint.encode() + array("q", [segment.start, *segment.tokens]).tobytes()
        stem = hashlib.sha256(named).hexdigest()[:32]
        try:
            path = cache_file.write(self._folder, stem, header, arrays)
        except Exception as error:
            with self._lock:
                self._segments.remove(segment)
            self._settings.log(f"a cache file is not written: {_reason(error)}")
            return
        with self._lock:
            if segment in self._segments:
                segment.path = path
            else:  # it was cleared meanwhile
                path.unlink(missing_ok=True)
        self._shrink()

    def _shrink(self) -> None:
        """Removes the least recently used files, of whatever model, beyond the budget."""
        files = sorted(_files(self._settings.directory))
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self._settings.budget_bytes:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
            with self._lock:
                for segment in [segment for segment in self._segments if segment.path == path]:
                    self._segments.remove(segment)


class Read:
    """A `Source` of what was read.

    Args:
        start: The slices are those of the tokens from here on.
        length: The tokens of the sequence.
        slices: The slices.
        snapshot: The caches of the layers that cannot be cut.
    """

    def __init__(self, start: int, length: int, slices: Slices, snapshot: list[Any]) -> None:
        self.length = length
        self._start = start
        self._slices = slices
        self._snapshot = snapshot

    def slices(self, start: int, stop: int) -> Slices:
        """See `Source.slices`."""
        return _cut(self._slices, start - self._start, stop - self._start)

    def snapshot(self) -> list[Any]:
        """See `Source.snapshot`."""
        return self._snapshot


class _Unreadable(Exception):
    def __init__(self, segment: Segment, reason: str) -> None:
        super().__init__(reason)
        self.segment = segment
        self.reason = reason


def _private(folder: Path) -> Path:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise ForeignFileError(f"{folder} is not this user's alone; remove it, or name another directory")
    return folder


def _files(directory: Path) -> list[tuple[float, int, Path]]:
    """Time of last use, size and path of all files that are counted; what no writer ends any more is removed."""
    files: list[tuple[float, int, Path]] = []
    for path in directory.glob(f"{'[0-9a-f]' * 32}/*.safetensors"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if TEMPORARY.fullmatch(path.name) and status.st_mtime < time.time() - ABANDONED_SECONDS:
                path.unlink()
            elif NAME.fullmatch(path.name):
                files.append((status.st_mtime, status.st_size, path))
    return files


def _taken(node: Node, start: int, stop: int) -> Slices:
    """What the tree has of the tokens from `start` to `stop`, on the way to a node."""
    pieces: list[Slices] = []
    for step in reversed(list(node.path())):
        begin = step.end - len(step.edge)
        if step.end > start and begin < stop:
            pieces.append(_cut(step.slices, max(start - begin, 0), min(stop, step.end) - begin))
    return _joined(pieces)


def _cut(slices: Slices, start: int, stop: int) -> Slices:
    """A part of slices, which keeps the rest of them alive only when it is all."""
    return [
        [
            array if (start, stop) == (0, array.shape[-2]) else mx.contiguous(array[..., start:stop, :])
            for array in arrays
        ]
        for arrays in slices
    ]


def _joined(pieces: list[Slices]) -> Slices:
    if len(pieces) == 1:
        return pieces[0]
    return [
        [mx.concatenate(list(same), axis=-2) for same in zip(*layer, strict=True)]
        for layer in zip(*pieces, strict=True)
    ]


def _end(steps: list[Step]) -> int:
    return steps[-1].stop if steps else 0


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
