"""A radix tree over tokens: an edge owns what the layers keep of its own tokens, so a common prefix is kept once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

Slices = list[list[mx.array]]
"""Of each layer that can be cut, what it keeps of some tokens: arrays whose last axis but one is the tokens."""


class RadixNode:
    """A place in the tree, with the edge that leads to it from its parent.

    Args:
        parent: None for the root.
        edge: Its tokens; none for the root.
        slices: Of the edge's tokens.
    """

    def __init__(self, parent: "RadixNode | None", edge: list[int], slices: Slices) -> None:
        self.parent = parent
        self.edge = edge
        self.slices = slices
        self.length: int = len(edge) + (parent.length if parent else 0)
        """Tokens from the root to here."""
        self.snapshot: list[Any] | None = None
        """The caches of the layers that cannot be cut, as they are behind the edge's last token."""
        self.snapshot_bytes = 0
        self.pinned = False
        self.children: dict[int, RadixNode] = {}
        """By the first token of their edge."""
        if parent is not None:
            parent.children[edge[0]] = self

    @property
    def bytes(self) -> int:
        """What it owns."""
        return self.snapshot_bytes + slices_bytes(self.slices)

    def path(self) -> Iterator["RadixNode"]:
        """Itself and what is above it, without the root."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent

    def match(self, tokens: list[int]) -> "Match":
        """How far the tokens lead from here, which is the root."""
        node, inside, length = self, 0, 0
        while inside == len(node.edge) and length < len(tokens) and tokens[length] in node.children:
            node = node.children[tokens[length]]
            inside = common_length(node.edge, tokens, length)
            length += inside
        return Match(node, inside, length)

    def split(self, at: int) -> "RadixNode":
        """Puts a node into the middle of its edge, and returns that."""
        assert self.parent is not None and 0 < at < len(self.edge)
        head, self.slices = slice_tokens(self.slices, 0, at), slice_tokens(self.slices, at, len(self.edge))
        top = RadixNode(self.parent, self.edge[:at], head)
        top.children[self.edge[at]] = self
        self.parent, self.edge = top, self.edge[at:]
        return top

    def slices_between(self, start: int, stop: int) -> Slices:
        """The slices of the tokens from `start` to `stop`, on the way to here."""
        pieces: list[Slices] = []
        for step in reversed(list(self.path())):
            begin = step.length - len(step.edge)
            if step.length > start and begin < stop:
                pieces.append(slice_tokens(step.slices, max(start - begin, 0), min(stop, step.length) - begin))
        return concatenate(pieces)

    def detach(self) -> None:
        """Takes it out of the tree, with all that is below it."""
        assert self.parent is not None
        del self.parent.children[self.edge[0]]
        self.parent = None

    def subtree(self) -> Iterator["RadixNode"]:
        """Itself and all that is below it."""
        waiting: list[RadixNode] = [self]
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children.values())
            yield node


@dataclass(frozen=True, slots=True)
class Match:
    """How far a sequence of tokens leads into the tree."""

    node: RadixNode
    """The last one with an edge that begins as the tokens go on; the root when none does."""
    edge_tokens: int
    """Tokens of its edge that are the same."""
    length: int
    """Tokens that are the same in all."""

    @property
    def covers_edge(self) -> bool:
        """Whether the last edge is matched to its end."""
        return self.edge_tokens == len(self.node.edge)


def slices_bytes(slices: Slices) -> int:
    """What they take."""
    return sum(array.nbytes for arrays in slices for array in arrays)


def slice_tokens(slices: Slices, start: int, stop: int) -> Slices:
    """A part of slices, which keeps the rest of them alive only when it is all."""
    return [
        [
            array if (start, stop) == (0, array.shape[-2]) else mx.contiguous(array[..., start:stop, :])
            for array in arrays
        ]
        for arrays in slices
    ]


def concatenate(pieces: list[Slices]) -> Slices:
    """The slices of all the pieces' tokens, in their order."""
    if len(pieces) == 1:
        return pieces[0]
    return [
        [mx.concatenate(list(same), axis=-2) for same in zip(*layer, strict=True)]
        for layer in zip(*pieces, strict=True)
    ]


def common_length(edge: list[int], tokens: list[int], start: int) -> int:
    """How many of an edge's tokens are those from `start` on. Comparing halves of lists is faster than each token."""
    low, high = 0, min(len(edge), len(tokens) - start)
    while low < high:
        middle = (low + high + 1) // 2
        if edge[low:middle] == tokens[start + low : start + middle]:
            low = middle
        else:
            high = middle - 1
    return low
