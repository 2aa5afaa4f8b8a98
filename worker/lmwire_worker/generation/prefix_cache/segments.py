"""An index of the tokens on disk. Each file holds one segment of a sequence."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .radix_tree import common_length

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
