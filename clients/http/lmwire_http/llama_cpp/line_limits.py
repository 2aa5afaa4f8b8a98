"""Ends of an answer that depend on its lines: their indentation, and the time once there is a second one."""

import re
from typing import Final

_INDENTATION: Final = re.compile(r"[ \t]*")


class LineLimits:
    """Ends the text of one answer.

    Args:
        n_indent: Least indentation of each line after the first, in characters; 0 is off. Blank lines have none.
        max_s: Longest time after the first text for an answer with a line break, in seconds; 0 is off.
    """

    def __init__(self, n_indent: int, max_s: float) -> None:
        self.ended = False
        """True if the answer ends here."""
        self.has_line_break = False
        """True if the text so far has a line break."""
        self._n_indent = n_indent
        self._max_s = max_s
        self._started_at: float | None = None
        self._held = ""
        """A line break and the indentation after it, as long as nothing else follows."""

    def push(self, text: str, now: float) -> str:
        """Add text, and return what is certain to belong to the answer.

        Args:
            text: The next text.
            now: The time, in seconds.
        """
        if self.ended:
            return ""
        self._started_at = now if self._started_at is None else self._started_at
        visible = self._within_indentation(text) if self._n_indent else text
        self.has_line_break |= "\n" in visible
        if self._max_s and self.has_line_break and now - self._started_at > self._max_s:
            self.ended = True
        return visible

    def flush(self) -> str:
        """Return the text that was held back, at the answer's own end."""
        return "" if self.ended else self._held

    def _within_indentation(self, added: str) -> str:
        text, self._held = self._held + added, ""
        line_break = text.find("\n")
        while line_break >= 0:
            indentation = _INDENTATION.match(text, line_break + 1)
            start = indentation.end() if indentation else line_break + 1
            if start == len(text):
                self._held = text[line_break:]
                return text[:line_break]
            if text[start] != "\n" and start - line_break - 1 < self._n_indent:
                self.ended = True
                return text[:line_break]
            line_break = text.find("\n", start)
        return text
