"""The prefix cache: stores computed tokens within a budget, and evicts the least recently used."""

import time
from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
from msgspec import Struct

from lmwire_protocol.events import CacheStats

from .cache_schema import CacheSchema, CacheSource, arrays_of
from .radix_tree import RadixNode, slices_bytes

if TYPE_CHECKING:
    from .disk_tier import DiskRead, DiskTier

VERIFY_INTERVAL: Final = 100
"""Hits between two that are verified."""
MIN_HIT_TOKENS: Final = 16
"""Minimum length of a hit, unless it is `MIN_HIT_FRACTION` of the prompt. Fewer tokens are computed as quickly."""
MIN_HIT_FRACTION: Final = 1 / 8
MAX_VERIFIED_TOKENS: Final = 2048
"""Maximum length of a hit that is verified: the request waits while its tokens are computed again."""


class CacheHit(Struct, frozen=True):
    """The cached prefix of a prompt."""

    length: int
    """Number of tokens, fewer than the prompt has."""
    cache: list[Any]
    """The model's caches with these tokens. The caller may change them."""
    needs_verification: bool = False
    """The caller compares the cache with newly computed tokens, and does not use it."""


class PrefixCache:
    """Stores the caches of token sequences in a radix tree; see `radix_tree`.

    Args:
        schema: The kinds of the model's caches.
        budget_bytes: Maximum size.
        verify_interval: Hits between two that are verified.
        disk: Stores entries for later processes; None if nothing is written to disk.
    """

    def __init__(
        self,
        schema: CacheSchema,
        budget_bytes: int,
        verify_interval: int = VERIFY_INTERVAL,
        *,
        disk: "DiskTier | None" = None,
    ) -> None:
        self._schema = schema
        self.budget = budget_bytes
        self._verify_interval = verify_interval
        self._disk = disk
        self._root = RadixNode(None, [], [])
        self._recent: OrderedDict[RadixNode, float] = OrderedDict()
        """The nodes that may be evicted, with the time of their last use, least recent first. If the model needs
        snapshots, these are the nodes with one. Otherwise they are all nodes, children before their parents."""
        self.bytes = 0
        self._entries = self._found = self._hits = self._misses = self._saved = self._evictions = self._mismatches = 0

    def start_reading(self, prompt: list[int]) -> "Future[DiskRead | None] | None":
        """Start to read the part of a prompt that only the disk holds; return None if that is too short."""
        return self._disk and self._disk.start_reading(prompt[:-1], self._known(prompt[:-1])[1], self._schema.restore)

    def fetch(self, prompt: list[int], read: "DiskRead | None" = None) -> CacheHit | None:
        """Return the longest cached prefix of a prompt, without its last token; None if that is too short.

        Args:
            prompt: The prompt's tokens.
            read: The result of `start_reading`. It is ignored if the disk entry, or the prefix before it, has been
                dropped.
        """
        if self._disk and read and self._disk.is_current(read) and self._root.match(prompt).length >= read.start:
            self.store(prompt[: read.length], read)
        node, length = self._known(prompt[:-1])
        if length < min(MIN_HIT_TOKENS, MIN_HIT_FRACTION * len(prompt)):  # so is 0
            self._misses += 1
            return None
        self._touch(node)
        path = list(node.path())[::-1]
        pieces = [step.slices for step in path[:-1]]
        left = length - node.length + len(node.edge)
        pieces.append([[array[..., :left, :] for array in arrays] for arrays in node.slices])
        cache = self._schema.build(pieces, node.snapshot or (), length)
        self._found += 1
        check = length <= MAX_VERIFIED_TOKENS and self._found % self._verify_interval == 0
        if check:
            self._misses += 1
        else:
            self._hits += 1
            self._saved += length
        return CacheHit(length, cache, check)

    def store(self, tokens: list[int], source: CacheSource, *, pin: bool = False) -> None:
        """Store the new part of a sequence.

        Args:
            tokens: The tokens that the source holds.
            source: The caches of the sequence.
            pin: Whether to keep the entry until the cache is cleared.
        """
        match = self._root.match(tokens)
        node = match.node
        slices = source.slices(match.length, len(tokens))
        if slices_bytes(slices) > self.budget:
            return  # otherwise it would evict all others, and then itself
        if not match.covers_edge and (match.length < len(tokens) or self._schema.needs_snapshots or pin):
            node = self._split(node, match.edge_tokens)
        if match.length < len(tokens):
            node = RadixNode(node, tokens[match.length :], slices)
            self._entries += 1
            self.bytes += node.bytes
        if node is self._root:
            return
        if self._schema.needs_snapshots and node.snapshot is None:
            node.snapshot = source.snapshot()
            node.snapshot_bytes = sum(array.nbytes for array in arrays_of(node.snapshot))
            self.bytes += node.snapshot_bytes
        self._touch(node)
        self._evict_to(self.budget)
        if node.pinned or node in self._recent:
            mx.async_eval(node.slices, arrays_of(node.snapshot or ()))
            if self._disk:
                self._disk.write(tokens, node)
            if pin:
                self._pin(node)

    def pin(self, tokens: list[int]) -> None:
        """Pin the entry of tokens that `fetch` found."""
        match = self._root.match(tokens)
        if match.length == len(tokens):
            self._pin(match.node if match.covers_edge else self._split(match.node, match.edge_tokens))

    @property
    def pinned_bytes(self) -> int:
        """Size of all pinned entries, in bytes."""
        return sum(slices_bytes(node.slices) + node.pinned * node.snapshot_bytes for node in self._pinned())

    def pin_cost(self, tokens: list[int], places: Collection[int]) -> tuple[int, int]:
        """Return (unpinned tokens, missing snapshots) of a sequence.

        Args:
            tokens: The sequence.
            places: Lengths at which the sequence needs a snapshot.
        """
        pinned, match = self._pinned(), self._root.match(tokens)
        way = [node for node in match.node.path() if node in pinned]
        known = min(way[0].length, match.length) if way else 0
        return len(tokens) - known, len({*places} - {node.length for node in way if node.pinned})

    def quarantine(self, tokens: list[int]) -> None:
        """Drop all sequences that begin with the same token, after a failed verification."""
        self._mismatches += 1
        if (node := self._root.children.get(tokens[0])) is not None:
            self._forget(node)
        if self._disk:
            self._disk.discard_prefix(tokens[0])

    @property
    def stale_since(self) -> float | None:
        """Last use of the next entry to evict, as `time.monotonic` counts; None if nothing can be evicted."""
        return next((used for node, used in self._recent.items() if self._droppable(node)), None)

    def evict(self, bytes: int) -> int:
        """Evict at least `bytes`, if unpinned entries suffice, and return the number of bytes freed."""
        before = self.bytes
        self._evict_to(max(before - bytes, 0))
        return before - self.bytes

    def clear(self) -> int:
        """Delete all entries, on disk too, and return the number of bytes freed in memory."""
        before = self.bytes
        for node in list(self._root.children.values()):
            self._forget(node)
        if self._disk:
            self._disk.clear()
        return before

    def close(self) -> None:
        """Finish the writes to disk. Nothing may be stored afterwards."""
        if self._disk:
            self._disk.close()

    def stats(self) -> CacheStats:
        """Return the statistics. Safe in any thread."""
        return CacheStats(
            bytes=self.bytes,
            budget_bytes=self.budget,
            entries=self._entries,
            hits=self._hits,
            misses=self._misses,
            saved_tokens=self._saved,
            evictions=self._evictions,
            mismatches=self._mismatches,
        )

    def _known(self, tokens: list[int]) -> tuple[RadixNode, int]:
        """Return the node from which a sequence can continue, and the number of its tokens known there."""
        match = self._root.match(tokens)
        node, length = match.node, match.length
        if self._schema.needs_snapshots:
            node = _snapshot_above(node if match.covers_edge or node.parent is None else node.parent)
            length = node.length
        return node, length

    def _touch(self, node: RadixNode) -> None:
        """Mark a node as the most recently used."""
        for step in (node,) if self._schema.needs_snapshots else node.path():
            if not step.pinned:
                self._recent[step] = time.monotonic()
                self._recent.move_to_end(step)

    def _pin(self, node: RadixNode) -> None:
        node.pinned = True
        self._recent.pop(node, None)

    def _pinned(self) -> set[RadixNode]:
        """Return the pinned nodes and their ancestors."""
        return {step for node in self._root.subtree() if node.pinned for step in node.path()}

    def _split(self, node: RadixNode, at: int) -> RadixNode:
        top = node.split(at)
        mx.async_eval(top.slices, node.slices)
        self._entries += 1
        if not self._schema.needs_snapshots:
            self._touch(top)
        return top

    def _evict_to(self, budget: int) -> None:
        while self.bytes > budget and (node := next(filter(self._droppable, self._recent), None)):
            self._evictions += 1
            self._drop(node)

    def _droppable(self, node: RadixNode) -> bool:
        """Return whether a node may go: without snapshots, its children need it."""
        return self._schema.needs_snapshots or not node.children

    def _drop(self, node: RadixNode) -> None:
        """Drop an entry, and its ancestors that nothing else needs."""
        self.bytes -= node.snapshot_bytes
        node.snapshot, node.snapshot_bytes = None, 0
        self._recent.pop(node, None)
        while node.parent is not None and not node.children and node.snapshot is None:
            above = node.parent
            self._forget(node)
            if not self._schema.needs_snapshots:
                return
            node = above

    def _forget(self, node: RadixNode) -> None:
        """Drop a node with its subtree."""
        node.detach()
        for lost in node.subtree():
            self._entries -= 1
            self.bytes -= lost.bytes
            self._recent.pop(lost, None)
            lost.parent = None  # otherwise the cycle keeps its memory until the garbage collector runs


def _snapshot_above(node: RadixNode) -> RadixNode:
    """Return the nearest node with a snapshot: the node itself, or an ancestor; else the root."""
    while node.parent is not None and node.snapshot is None:
        node = node.parent
    return node
