"""Find strings in a stream of text, also across the ends of its parts, and withhold text that may become one."""

from collections import deque
from collections.abc import Iterable


class _Node:
    """A prefix of one or more of the strings."""

    __slots__ = ("depth", "fallback", "match", "next")

    def __init__(self, depth: int) -> None:
        self.next: dict[str, _Node] = {}
        self.depth = depth
        self.fallback: _Node = self
        """Longest proper suffix of this prefix that is also a prefix."""
        self.match: str | None = None
        """Longest string that this prefix ends with, if any."""


class StringAutomaton:
    """An Aho-Corasick automaton, which finds any number of strings in one pass over the text.

    The match is the string that is complete first. If several are complete at once, it is the longest.

    See https://doi.org/10.1145/360825.360855.

    Args:
        strings: The strings to find; none is empty.
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
        """Return the longest prefix that the text ends with after one more character.

        Args:
            node: The longest prefix before the character.
            character: The next character of the text.
        """
        while character not in node.next:
            if node is self.root:
                return node
            node = node.fallback
        return node.next[character]


class StringMatcher:
    """Matches one text, as it comes.

    Args:
        strings: The strings to find.
    """

    def __init__(self, strings: StringAutomaton) -> None:
        self._strings = strings
        self._node = strings.root
        self._held = ""
        self.rest = ""
        """Text after the match in the newest push."""

    def push(self, text: str) -> tuple[str, str | None]:
        """Add text; return the text that is certain not to be part of a match, and the matched string or None.

        After a match, all text before it has been returned, and the matcher is in its initial state.
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
        """Number of withheld characters."""
        return len(self._held)

    def flush(self) -> str:
        """Return the withheld text and reset the matcher, at the end of a text."""
        held, self._held = self._held, ""
        self._node = self._strings.root
        return held
