"""The prefix cache: stores computed tokens in a tree, within a budget, and evicts the least recently used."""

import math
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
from msgspec import Struct

from lmwire_protocol.events import CacheStats

from ..caches import CacheSchema, CacheSource, Slices, arrays_of

if TYPE_CHECKING:
    from .disk_tier import ComputeSeconds, DiskRead, DiskTier

VERIFY_INTERVAL: Final = 100
"""Hits between two that are verified."""
MIN_HIT_TOKENS: Final = 16
"""Minimum length of a hit, unless it is `MIN_HIT_FRACTION` of the prompt. Fewer tokens are computed as quickly."""
MIN_HIT_FRACTION: Final = 1 / 8
MAX_VERIFIED_TOKENS: Final = 2048
"""Maximum length of a hit that is verified: the request waits while its tokens are computed again."""


# A radix tree over tokens. Each edge owns the caches of its own tokens, so a common prefix is stored once.
# The idea is SGLang's RadixAttention: https://arxiv.org/abs/2312.07104


class RadixNode:
    """A node, with the edge from its parent.

    Args:
        parent: The parent; None for the root.
        edge: The tokens of the edge; empty for the root.
        slices: The caches of the edge's tokens.
    """

    def __init__(self, parent: "RadixNode | None", edge: list[int], slices: Slices) -> None:
        self.parent = parent
        self.edge = edge
        self.slices = slices
        self.length: int = len(edge) + (parent.length if parent else 0)
        """Number of tokens from the root to here."""
        self.snapshot: list[Any] | None = None
        """The caches of the layers that cannot be sliced, after the edge's last token."""
        self.snapshot_bytes = 0
        self.pinned = False
        self.children: dict[int, RadixNode] = {}
        """The children, by the first token of their edge."""
        if parent is not None:
            parent.children[edge[0]] = self

    @property
    def bytes(self) -> int:
        """Size of the slices and the snapshot."""
        return self.snapshot_bytes + slices_bytes(self.slices)

    def path(self) -> Iterator["RadixNode"]:
        """Yield the node and its ancestors, without the root."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent

    def match(self, tokens: list[int]) -> "Match":
        """Follow tokens from the root, which this node must be, and return how far they lead."""
        node, inside, length = self, 0, 0
        while inside == len(node.edge) and length < len(tokens) and tokens[length] in node.children:
            node = node.children[tokens[length]]
            inside = common_length(node.edge, tokens, length)
            length += inside
        return Match(node, inside, length)

    def split(self, at: int) -> "RadixNode":
        """Split the edge after `at` tokens, and return the new node in the middle."""
        assert self.parent is not None and 0 < at < len(self.edge)
        head, self.slices = slice_tokens(self.slices, 0, at), slice_tokens(self.slices, at, len(self.edge))
        top = RadixNode(self.parent, self.edge[:at], head)
        top.children[self.edge[at]] = self
        self.parent, self.edge = top, self.edge[at:]
        return top

    def slices_between(self, start: int, stop: int) -> Slices:
        """Return the slices of the tokens from `start` to `stop`, counted from the root."""
        pieces: list[Slices] = []
        for step in reversed(list(self.path())):
            begin = step.length - len(step.edge)
            if step.length > start and begin < stop:
                pieces.append(slice_tokens(step.slices, max(start - begin, 0), min(stop, step.length) - begin))
        return concatenate(pieces)

    def detach(self) -> None:
        """Remove the node from the tree, with its subtree."""
        assert self.parent is not None
        del self.parent.children[self.edge[0]]
        self.parent = None

    def subtree(self) -> Iterator["RadixNode"]:
        """Yield the node and all nodes below it."""
        waiting: list[RadixNode] = [self]
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children.values())
            yield node


class Match(Struct, frozen=True):
    """The longest prefix of a sequence in the tree."""

    node: RadixNode
    """The last node whose edge matches at least one token; else the root."""
    edge_tokens: int
    """Number of matching tokens on the node's edge."""
    length: int
    """Number of matching tokens in all."""

    @property
    def covers_edge(self) -> bool:
        """True if the last edge matches to its end."""
        return self.edge_tokens == len(self.node.edge)


def slices_bytes(slices: Slices) -> int:
    """Return the size of slices."""
    return sum(array.nbytes for arrays in slices for array in arrays)


def slice_tokens(slices: Slices, start: int, stop: int) -> Slices:
    """Return a part of slices as copies, so that the rest can be freed.

    Args:
        slices: The slices.
        start: The first token.
        stop: The token after the last.
    """
    return [
        [
            array if (start, stop) == (0, array.shape[-2]) else mx.contiguous(array[..., start:stop, :])
            for array in arrays
        ]
        for arrays in slices
    ]


def concatenate(pieces: list[Slices]) -> Slices:
    """Return the slices of consecutive tokens as one."""
    if len(pieces) == 1:
        return pieces[0]
    return [
        [mx.concatenate(list(same), axis=-2) for same in zip(*layer, strict=True)]
        for layer in zip(*pieces, strict=True)
    ]


def common_length(edge: list[int], tokens: list[int], start: int) -> int:
    """Return the number of an edge's tokens that match `tokens` from `start` on.

    A binary search over slices is faster than a loop over tokens.

    Args:
        edge: The tokens of the edge.
        tokens: The sequence.
        start: Index of the first token of the sequence to compare.
    """
    low, high = 0, min(len(edge), len(tokens) - start)
    while low < high:
        middle = (low + high + 1) // 2
        if edge[low:middle] == tokens[start + low : start + middle]:
            low = middle
        else:
            high = middle - 1
    return low


# The cache with its budget.


class CacheHit(Struct, frozen=True):
    """The cached prefix of a prompt."""

    length: int
    """Number of tokens, fewer than the prompt has."""
    cache: list[Any]
    """The model's caches with these tokens. The caller may change them."""
    needs_verification: bool = False
    """The caller compares the cache with newly computed tokens, and does not use it."""


class PrefixCache:
    """Stores the caches of token sequences in a radix tree.

    Args:
        schema: The kinds of the model's caches.
        budget_bytes: Maximum size.
        verify_interval: Hits between two that are verified.
        disk: Stores entries for later processes; None if nothing is written to disk.
        compute_s: Predicts how long the model computes tokens, in seconds; see `DiskTier.start_reading`.
    """

    def __init__(
        self,
        schema: CacheSchema,
        budget_bytes: int,
        verify_interval: int = VERIFY_INTERVAL,
        *,
        disk: "DiskTier | None" = None,
        compute_s: "ComputeSeconds" = lambda *_: math.inf,
    ) -> None:
        self._schema = schema
        self.budget = budget_bytes
        self.verify_interval = verify_interval
        self.disk = disk
        self._compute_s = compute_s
        self.root = RadixNode(None, [], [])
        self._recent: OrderedDict[RadixNode, float] = OrderedDict()
        """The nodes that may be evicted, with the time of their last use, least recent first. If the model needs
        snapshots, these are the nodes with one. Otherwise they are all nodes, children before their parents."""
        self.bytes = 0
        self._entries = self._found = self._hits = self._misses = self._saved = self._evictions = self._mismatches = 0

    def start_reading(self, prompt: list[int]) -> "Future[DiskRead | None] | None":
        """Start to read the part of a prompt that only the disk holds; return None if that is too short, or slower."""
        if self.disk is None:
            return None
        known = self._known(prompt[:-1])[1]
        return self.disk.start_reading(prompt[:-1], known, self._schema.restore, self._compute_s)

    def known_tokens(self, prompt: list[int]) -> int:
        """Return the number of a prompt's tokens that `fetch` would find in memory."""
        length = self._known(prompt[:-1])[1]
        return 0 if _is_too_short(length, prompt) else length

    def common_tokens(self, prompt: list[int]) -> tuple[int, bool]:
        """Return with how many tokens a prompt begins like a cached sequence, and whether that goes on otherwise.

        The last token of the prompt does not count, since it is always computed.
        """
        match = self.root.match(prompt[:-1])
        return match.length, not match.covers_edge or bool(match.node.children)

    def fetch(self, prompt: list[int], read: "DiskRead | None" = None) -> CacheHit | None:
        """Return the longest cached prefix of a prompt, without its last token; None if that is too short.

        Args:
            prompt: The prompt's tokens.
            read: The result of `start_reading`. It is ignored if the disk entry, or the prefix before it, has been
                dropped.
        """
        if self.disk and read and self.disk.is_current(read) and self.root.match(prompt).length >= read.start:
            self.store(prompt[: read.length], read)
        node, length = self._known(prompt[:-1])
        if _is_too_short(length, prompt):
            self._misses += 1
            return None
        self._touch(node)
        path = list(node.path())[::-1]
        pieces = [step.slices for step in path[:-1]]
        left = length - node.length + len(node.edge)
        pieces.append([[array[..., :left, :] for array in arrays] for arrays in node.slices])
        cache = self._schema.build(pieces, node.snapshot or (), length)
        self._found += 1
        check = length <= MAX_VERIFIED_TOKENS and self._found % self.verify_interval == 0
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
        match = self.root.match(tokens)
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
        if node is self.root:
            return
        if self._schema.needs_snapshots and node.snapshot is None:
            node.snapshot = source.snapshot()
            node.snapshot_bytes = sum(array.nbytes for array in arrays_of(node.snapshot))
            self.bytes += node.snapshot_bytes
        self._touch(node)
        self._evict_to(self.budget)
        if node.pinned or node in self._recent:
            mx.async_eval(node.slices, arrays_of(node.snapshot or ()))
            if self.disk:
                self.disk.write(tokens, node)
            if pin:
                self._pin(node)

    def pin(self, tokens: list[int]) -> None:
        """Pin the entry of tokens that `fetch` found."""
        match = self.root.match(tokens)
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
        pinned, match = self._pinned(), self.root.match(tokens)
        way = [node for node in match.node.path() if node in pinned]
        known = min(way[0].length, match.length) if way else 0
        return len(tokens) - known, len({*places} - {node.length for node in way if node.pinned})

    def quarantine(self, tokens: list[int]) -> None:
        """Drop all sequences that begin with the same token, after a failed verification."""
        self._mismatches += 1
        if (node := self.root.children.get(tokens[0])) is not None:
            self._forget(node)
        if self.disk:
            self.disk.discard_prefix(tokens[0])

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
        for node in list(self.root.children.values()):
            self._forget(node)
        if self.disk:
            self.disk.clear()
        return before

    def close(self) -> None:
        """Finish the writes to disk. Nothing may be stored afterwards."""
        if self.disk:
            self.disk.close()

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
        match = self.root.match(tokens)
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
        return {step for node in self.root.subtree() if node.pinned for step in node.path()}

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


def _is_too_short(length: int, prompt: list[int]) -> bool:
    """Return whether a cached prefix is shorter than a hit must be. One of length 0 always is."""
    return length < min(MIN_HIT_TOKENS, MIN_HIT_FRACTION * len(prompt))


def _snapshot_above(node: RadixNode) -> RadixNode:
    """Return the nearest node with a snapshot: the node itself, or an ancestor; else the root."""
    while node.parent is not None and node.snapshot is None:
        node = node.parent
    return node
