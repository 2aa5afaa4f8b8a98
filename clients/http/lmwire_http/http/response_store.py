"""Memory of earlier responses, which requests can continue."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..settings import MIB

MAX_BYTES: Final = 256 * MIB
"""Total size of all stored responses, in bytes."""


class _Entry(NamedTuple):
    value: Any
    size: int


class ResponseStore:
    """Values by id. New values displace the oldest ones.

    Args:
        max_entries: Most values.
        max_bytes: Most bytes of all values together.
    """

    def __init__(self, max_entries: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: dict[str, _Entry] = {}
        self._bytes = 0

    def put(self, id: str, value: object, size: int) -> None:
        """Store a value, unless it is too large for the whole store.

        Args:
            id: The value's id.
            value: The value.
            size: Its size in bytes.
        """
        self.delete(id)
        if size > self._max_bytes or not self._max_entries:
            return
        self._entries[id] = _Entry(value, size)
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self.delete(next(iter(self._entries)))

    def get(self, id: str) -> Any:
        """Return a value; None if no value has that id any more."""
        entry = self._entries.get(id)
        return entry and entry.value

    def newest_first(self) -> Iterator[Any]:
        """Return all values, the newest first."""
        return (entry.value for entry in reversed(self._entries.values()))

    def delete(self, id: str) -> bool:
        """Delete a value, and return whether it existed."""
        if (entry := self._entries.pop(id, None)) is None:
            return False
        self._bytes -= entry.size
        return True
