"""Strings looked for in a stream of text: found wherever its pieces end, and never shown, not even in part."""

from collections import deque
from collections.abc import Iterable


class _Node:
    """A prefix of some string."""

    __slots__ = ("depth", "fallback", "match", "next")

    def __init__(self, depth: int) -> None:
        self.next: dict[str, _Node] = {}
        self.depth = depth
        self.fallback: _Node = self
        """The longest proper suffix of this prefix that is a prefix too."""
        self.match: str | None = None
        """The longest string that this prefix ends with."""


class Strings:
    """An Aho-Corasick automaton: one pass over the text, however many strings there are.

    The match is the one that is complete first; of those complete at once, the longest.
    """

    def __init__(self, strings: Iterable[str]) -> None:
        self.root = _Node(0)
        for string in strings:
            node = self.root
            for character in string:
                node = node.next.setdefault(character, _Node(node.depth + 1))
            node.match = string
        queue = deque([self.root])
        while queue:  # breadth first, since a fallback is always shorter
            parent = queue.popleft()
            for character, node in parent.next.items():
                node.fallback = self.root if parent is self.root else self.step(parent.fallback, character)
                node.match = node.match or node.fallback.match
                queue.append(node)

    def step(self, node: _Node, character: str) -> _Node:
        """The longest prefix that the text ends with, one character on."""
        while character not in node.next:
            if node is self.root:
                return node
            node = node.fallback
        return node.next[character]


class Scanner:
    """One text's way through the automaton. Holds back what may become one of the strings."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._node = strings.root
        self._held = ""
        self.rest = ""
        """What came behind the match in the newest push."""

    def push(self, text: str) -> tuple[str, str | None]:
        """Takes the next text; returns what is certain by now, and the string once there is one.

        After a match the text before it has been returned, and the scanner stands where it began.
        """
        strings = self._strings
        self.rest = ""
        if self._node is strings.root and strings.root.next.keys().isdisjoint(text):
            return text, None
        node = self._node
        held = self._held
        for index, character in enumerate(text):
            node = strings.step(node, character)
            if node.match is not None:
                self.flush()
                self.rest = text[index + 1 :]
                seen = held + text[: index + 1]
                return seen[: len(seen) - len(node.match)], node.match
        self._node = node
        seen = held + text
        certain = len(seen) - node.depth
        self._held = seen[certain:]
        return seen[:certain], None

    @property
    def held(self) -> int:
        """Characters that are held back."""
        return len(self._held)

    def flush(self) -> str:
        """What is held back, for a text that ends here."""
        held, self._held = self._held, ""
        self._node = self._strings.root
        return held
