"""Prompts that are computed by themselves: those with images and sounds, and those whose tokens are scored."""

from collections import deque

from .media_backend import MediaPrefill
from .sequence import Sequence


class MediaQueue:
    """Prefills of prompts up to their last media input, or to their last token; oldest request first."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Sequence, MediaPrefill]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, sequence: Sequence, prefill: MediaPrefill) -> None:
        """Queue a prompt.

        Args:
            sequence: The first choice of its request.
            prefill: The work to do.
        """
        self._waiting.append((sequence, prefill))

    @property
    def first(self) -> tuple[Sequence, MediaPrefill]:
        """The prompt to compute next, and its prefill."""
        return self._waiting[0]

    def pop(self) -> None:
        """Remove the first prompt, which is complete."""
        self._waiting.popleft()

    def discard(self, key: int) -> None:
        """Remove the prompt of a request, if it is queued."""
        self._waiting = deque((sequence, work) for sequence, work in self._waiting if sequence.key != key)
