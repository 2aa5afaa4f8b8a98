"""The speed of streams while all of them are decoded, without their prompts and without the joins and the ends."""

from collections.abc import Hashable
from time import perf_counter


class DecodeRate:
    """Counts the tokens between the first token of the last stream and the end of the first one.

    Prompts, and on CUDA the kernels of each new number of rows, take time once for each stream. In a run of some
    seconds they would hide what a step takes.

    Args:
        streams: Number of streams.
    """

    def __init__(self, streams: int) -> None:
        self._streams = streams
        self._started: set[Hashable] = set()
        self._has_end = False
        self._all = self._counted = 0
        self._begin = self._from = self._until = self._last = perf_counter()

    def note(self, stream: Hashable, tokens: int, *, is_last: bool) -> None:
        """Count new tokens.

        Args:
            stream: Whose they are.
            tokens: Their number.
            is_last: Whether the stream ends with them.
        """
        self._last = perf_counter()
        self._all += tokens
        if len(self._started) < self._streams:
            self._started.add(stream)
            self._from = self._last
        elif not self._has_end:
            self._counted += tokens
            self._until = self._last
        self._has_end |= is_last

    @property
    def rate(self) -> float:
        """The tokens a second. Of streams that never were decoded all at once: those of the whole run."""
        if self._counted:
            return self._counted / (self._until - self._from)
        return self._all / (self._last - self._begin)
