"""Memory of earlier responses, which requests of the same caller can continue."""

from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

from ..settings import MIB

MAX_BYTES: Final = 256 * MIB
"""Total size of all stored responses, in bytes."""
_NO_ITEMS: Final[Mapping[str, object]] = {}


class _Entry(NamedTuple):
    value: Any
    size: int
    items: Mapping[str, object]


class _Share:
    """The values of one caller, the oldest first."""

    def __init__(self) -> None:
        self.entries: dict[str, _Entry] = {}
        self.items: dict[str, Any] = {}
        self.bytes = 0

    def add(self, id: str, entry: _Entry) -> None:
        self.entries[id] = entry
        self.items.update(entry.items)
        self.bytes += entry.size

    def delete(self, id: str) -> bool:
        if (entry := self.entries.pop(id, None)) is None:
            return False
        self.bytes -= entry.size
        for item in entry.items:
            del self.items[item]
        return True


class ResponseStore:
    """Values by caller and id. A caller finds only its own.

    A new value displaces the oldest one of the caller with the most, so no caller can displace all values of another.

    Args:
        max_entries: Most values of all callers together.
        max_bytes: Most bytes of all values together.
    """

    def __init__(self, max_entries: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._shares: dict[Hashable, _Share] = {}
        """The callers with values, the one that stored longest ago first."""

    def put(self, caller: Hashable, id: str, value: object, size: int, items: Mapping[str, object] = _NO_ITEMS) -> None:
        """Store a value, unless it is too large for the whole store.

        Args:
            caller: The caller that the value belongs to.
            id: The value's id, which the server has made.
            value: The value.
            size: Its size in bytes, with its items.
            items: Parts of the value, by ids that the server has made. They are deleted with it.
        """
        self.delete(caller, id)
        if size > self._max_bytes or not self._max_entries:
            return
        share = self._shares.pop(caller, None) or _Share()
        self._shares[caller] = share
        share.add(id, _Entry(value, size, items))
        while sum(len(share.entries) for share in self._shares.values()) > self._max_entries:
            self._drop_oldest_of(max(self._shares, key=lambda caller: len(self._shares[caller].entries)))
        while sum(share.bytes for share in self._shares.values()) > self._max_bytes:
            self._drop_oldest_of(max(self._shares, key=lambda caller: self._shares[caller].bytes))

    def get(self, caller: Hashable, id: str) -> Any:
        """Return a value; None if the caller has none with that id.

        Args:
            caller: The caller that asks.
            id: The value's id.
        """
        share = self._shares.get(caller)
        entry = share and share.entries.get(id)
        return entry and entry.value

    def item(self, caller: Hashable, id: str) -> Any:
        """Return a part of a value; None if the caller's values have none with that id.

        Args:
            caller: The caller that asks.
            id: The part's id.
        """
        share = self._shares.get(caller)
        return share and share.items.get(id)

    def delete(self, caller: Hashable, id: str) -> bool:
        """Delete a value, and return whether the caller had it.

        Args:
            caller: The caller that the value belongs to.
            id: The value's id.
        """
        if (share := self._shares.get(caller)) is None or not share.delete(id):
            return False
        if not share.entries:
            del self._shares[caller]
        return True

    def _drop_oldest_of(self, caller: Hashable) -> None:
        self.delete(caller, next(iter(self._shares[caller].entries)))
