"""A radix tree over tokens. Each edge owns the caches of its own tokens, so a common prefix is stored once.

The idea is SGLang's RadixAttention: https://arxiv.org/abs/2312.07104
"""

from collections.abc import Iterator
from typing import Any

import mlx.core as mx
from msgspec import Struct

Slices = list[list[mx.array]]
"""The caches of some tokens, for each layer that can be sliced. The last axis but one is the tokens."""


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
