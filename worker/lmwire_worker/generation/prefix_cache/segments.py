"""Which tokens are known on disk, and by which files, which hold one part of a sequence each."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .radix_tree import common_length

MIN_SEGMENT_TOKENS: Final = 64
"""Tokens: fewer are as soon computed as read."""


@dataclass(eq=False, slots=True)
class FileSegment:
    """A file, or what is about to become one."""

    tokens: list[int]
    """From the first one of the sequence on."""
    start: int
    """It has the slices of the tokens from here on."""
    has_snapshot: bool
    """Whether it has a snapshot, which is that of its last token."""
    path: Path | None = None
    """None while it is not written."""


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """The part of a segment that is needed."""

    segment: FileSegment
    start: int
    stop: int


class SegmentIndex:
    """The segments by their first tokens, so that what nobody has begun is missed at once."""

    def __init__(self) -> None:
        self._groups: defaultdict[tuple[int, ...], list[FileSegment]] = defaultdict(list)

    def __iter__(self) -> Iterator[FileSegment]:
        for group in self._groups.values():
            yield from group

    def add(self, segment: FileSegment) -> None:
        """Adds one of at least `MINIMUM` tokens."""
        self._groups[_key(segment.tokens)].append(segment)

    def remove(self, segment: FileSegment) -> None:
        """Removes one, if it is there."""
        group = self._groups.get(_key(segment.tokens), [])
        if segment in group:
            group.remove(segment)
        if not group:
            self._groups.pop(_key(segment.tokens), None)

    def covered(self, tokens: list[int]) -> int:
        """The tokens whose slices are known, written or not."""
        return end_of(_cover(self._reaches(tokens, written=False), len(tokens)))

    def chain(self, tokens: list[int], *, written: bool) -> list[SegmentSpan]:
        """How the longest known beginning of the tokens from which a model can go on is put together."""
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
    """The tokens that they lead through."""
    return steps[-1].stop if steps else 0


def _key(tokens: list[int]) -> tuple[int, ...]:
    return tuple(tokens[:MIN_SEGMENT_TOKENS])
