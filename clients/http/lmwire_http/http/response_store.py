"""What is kept of earlier answers, so that they can be continued."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..settings import MIB

BYTES: Final = 256 * MIB
"""Of all that is kept together."""


class _Kept(NamedTuple):
    value: Any
    size: int


class Stored:
    """Values by their ids, of which the oldest are dropped for new ones.

    Args:
        count: Values at most.
        bytes: Their sizes together, at most.
    """

    def __init__(self, count: int, bytes: int = BYTES) -> None:
        self._count, self._limit = count, bytes
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def keep(self, id: str, value: object, size: int) -> None:
        """Keeps a value of so many bytes, unless there is no room for it at all."""
        self.drop(id)
        if size > self._limit or not self._count:
            return
        self._kept[id] = _Kept(value, size)
        self._bytes += size
        while len(self._kept) > self._count or self._bytes > self._limit:
            self.drop(next(iter(self._kept)))

    def get(self, id: str) -> Any:
        """The value; None if there is none of this id, or none any more."""
        kept = self._kept.get(id)
        return kept and kept.value

    def newest(self) -> Iterator[Any]:
        """All values, the newest first."""
        return (kept.value for kept in reversed(self._kept.values()))

    def drop(self, id: str) -> bool:
        """Forgets it. Returns whether it was there."""
        if (kept := self._kept.pop(id, None)) is None:
            return False
        self._bytes -= kept.size
        return True
