"""The cache itself: what it keeps, within its budget, and what it drops."""

import time
from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

import mlx.core as mx

from lmwire_protocol.events import CacheStats

from .cache_schema import CacheSchema, CacheSource, arrays_of
from .disk_tier import DiskRead, DiskTier
from .radix_tree import RadixNode, slices_bytes

VERIFY_INTERVAL: Final = 100
"""One hit of so many is checked."""
MIN_HIT_TOKENS: Final = 16
"""Tokens: fewer, where they are no `SHARE` of a prompt, are processed again sooner than put in place."""
MIN_HIT_FRACTION: Final = 1 / 8
MAX_VERIFIED_TOKENS: Final = 2048
"""The longest hit that is checked: the request waits while it is computed anew."""


@dataclass(frozen=True)
class CacheHit:
    """What is known of a prompt."""

    length: int
    """Tokens, fewer than the prompt's."""
    cache: list[Any]
    """The model's caches, which hold them. The caller's own."""
    needs_verification: bool = False
    """It is to be held against what the model computes, and not to be used."""


class PrefixCache:
    """Keeps what a model computed for tokens; the least recently used goes first.

    Args:
        layout: Of the model's caches.
        budget_bytes: What it may take; it never takes more.
        check_every: One hit of so many is to be checked.
        disk: What is kept beyond the process; None for nothing.
    """

    def __init__(
        self,
        schema: CacheSchema,
        budget_bytes: int,
        verify_interval: int = VERIFY_INTERVAL,
        *,
        disk: DiskTier | None = None,
    ) -> None:
        self._schema = schema
        self.budget = budget_bytes
        self._verify_interval = verify_interval
        self._disk = disk
        self._root = RadixNode(None, [], [])
        self._recent: OrderedDict[RadixNode, float] = OrderedDict()
        """What may be dropped, and when it was last used, the least recently first: with snapshots the nodes that have
        one. Without, all nodes, and a node always comes before those above it, which are of no less use."""
        self.bytes = 0
        self._entries = self._found = self._hits = self._misses = self._saved = self._evictions = self._mismatches = 0

    def start_reading(self, prompt: list[int]) -> "Future[DiskRead | None] | None":
        """Begins to read what is known of a prompt on disk alone; None when that is not worth it. Waits for nothing."""
        return self._disk and self._disk.start_reading(prompt[:-1], self._known(prompt[:-1])[1], self._schema.restore)

    def fetch(self, prompt: list[int], read: DiskRead | None = None) -> CacheHit | None:
        """The longest known beginning of a prompt that leaves its last token to be processed; None when it is a scrap.

        Args:
            prompt: Its tokens.
            read: What `read` found of it. Of no use where that, or what it follows on, was dropped meanwhile.
        """
        if self._disk and read and self._disk.is_current(read) and self._root.match(prompt).length >= read.start:
            self.store(prompt[: read.length], read)
        node, length = self._known(prompt[:-1])
        if length < min(MIN_HIT_TOKENS, MIN_HIT_FRACTION * len(prompt)):  # nothing is less too
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
        """Keeps what a source knows of tokens, as far as it is new.

        Args:
            tokens: All that the source holds.
            source: Where it is.
            pin: Keep it until everything is cleared.
        """
        match = self._root.match(tokens)
        node = match.node
        slices = source.slices(match.length, len(tokens))
        if slices_bytes(slices) > self.budget:
            return  # all others would be dropped for it first
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
        """Keeps what is known of tokens until everything is cleared; `fetch` found them all."""
        match = self._root.match(tokens)
        if match.length == len(tokens):
            self._pin(match.node if match.covers_edge else self._split(match.node, match.edge_tokens))

    @property
    def pinned_bytes(self) -> int:
        """What is kept until everything is cleared."""
        return sum(slices_bytes(node.slices) + node.pinned * node.snapshot_bytes for node in self._pinned())

    def pin_cost(self, tokens: list[int], places: Collection[int]) -> tuple[int, int]:
        """Of a sequence, how many tokens are not pinned yet, and in how many of the places its snapshots are not."""
        pinned, match = self._pinned(), self._root.match(tokens)
        way = [node for node in match.node.path() if node in pinned]
        known = min(way[0].length, match.length) if way else 0
        return len(tokens) - known, len({*places} - {node.length for node in way if node.pinned})

    def quarantine(self, tokens: list[int]) -> None:
        """Drops all that is known of tokens, and whatever was computed from it: a check found it to be wrong."""
        self._mismatches += 1
        if (node := self._root.children.get(tokens[0])) is not None:
            self._forget(node)
        if self._disk:
            self._disk.discard_prefix(tokens[0])

    @property
    def stale_since(self) -> float | None:
        """When what would be dropped next was last used; None when there is nothing to drop."""
        return next((used for node, used in self._recent.items() if self._droppable(node)), None)

    def evict(self, bytes: int) -> int:
        """Drops at least so many bytes, as far as they are not pinned, and returns how many."""
        before = self.bytes
        self._evict_to(max(before - bytes, 0))
        return before - self.bytes

    def clear(self) -> int:
        """Drops everything, on disk as well, and returns its bytes in memory."""
        before = self.bytes
        for node in list(self._root.children.values()):
            self._forget(node)
        if self._disk:
            self._disk.clear()
        return before

    def close(self) -> None:
        """Ends what is written to disk. Nothing is kept any more."""
        if self._disk:
            self._disk.close()

    def stats(self) -> CacheStats:
        """May be called from any thread."""
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
        """From where in the tree a sequence can go on, and how many of its tokens are known there."""
        match = self._root.match(tokens)
        node, length = match.node, match.length
        if self._schema.needs_snapshots:
            node = _snapshot_above(node if match.covers_edge or node.parent is None else node.parent)
            length = node.length
        return node, length

    def _touch(self, node: RadixNode) -> None:
        """Makes it the most recently used."""
        for step in (node,) if self._schema.needs_snapshots else node.path():
            if not step.pinned:
                self._recent[step] = time.monotonic()
                self._recent.move_to_end(step)

    def _pin(self, node: RadixNode) -> None:
        node.pinned = True
        self._recent.pop(node, None)

    def _pinned(self) -> set[RadixNode]:
        """The nodes that are pinned, and those that lead to them."""
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
        """A node without snapshot is what those below it begin with."""
        return self._schema.needs_snapshots or not node.children

    def _drop(self, node: RadixNode) -> None:
        """Drops an entry, and what nothing else needs then."""
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
        """Drops a node with all that is below it."""
        node.detach()
        for lost in node.subtree():
            self._entries -= 1
            self.bytes -= lost.bytes
            self._recent.pop(lost, None)
            lost.parent = None  # a circle would keep its memory until Python looks for circles


def _snapshot_above(node: RadixNode) -> RadixNode:
    """The nearest node with a snapshot, itself or above it; else the root."""
    while node.parent is not None and node.snapshot is None:
        node = node.parent
    return node
