"""Attributes an answer's text to its tokens, for answers with log-probabilities.

A token's text may be withheld, or be part of a marker, a tool call or a stop string. A token therefore waits until the
destination of its text is known, and is sent with that text. If the answer lacks some of a token's text,
`Logprob.text` has the part that is there: the joined texts of all tokens are the answer's text.
"""

import operator
from collections import deque
from itertools import takewhile

from lmwire_protocol.events import Logprob


class _TokenGroup:
    """Tokens whose texts cannot be separated, such as those of one character. Most groups have one token."""

    __slots__ = ("channel", "logprobs", "sent", "text", "token_bytes")

    def __init__(self) -> None:
        self.logprobs: list[Logprob] = []
        self.token_bytes = b""
        """Bytes of the tokens."""
        self.text = ""
        """Text that the detokenizer returned for them."""
        self.channel: object = None
        """Channel that its text was last sent on. Its tokens are reported there only."""
        self.sent: list[str] = []

    @property
    def is_unfinished(self) -> bool:
        """Return whether the last token ends inside a character."""
        text = self.text.encode()
        rest = self.token_bytes[len(text) :]
        return self.token_bytes.startswith(text) and bool(rest) and _ends_inside_character(rest)

    @property
    def withheld(self) -> str:
        """Text of invalid bytes that the detokenizer withholds until the next token."""
        text = self.token_bytes.decode(errors="replace")
        return text.removeprefix(self.text) if "\ufffd" in text and text.startswith(self.text) else ""

    def adjusted_logprobs(self) -> list[Logprob]:
        """Return the log-probabilities, with `text` set if the answer has only a part of the tokens' text."""
        shown = "".join(self.sent)
        if shown.encode() == self.token_bytes or not self.logprobs:
            return self.logprobs
        for logprob in self.logprobs:
            logprob.text = ""
        self.logprobs[-1].text = shown
        return self.logprobs


class LogprobAttribution:
    """The tokens of one choice that wait for their text to be sent.

    The owner adds each token with the text that became certain, takes the fragments that the output parser finds, and
    calls `send` for each text that it sends.
    """

    def __init__(self) -> None:
        self._groups: deque[_TokenGroup] = deque()
        self._raw = ""
        """Text from the first group on."""
        self._start = 0
        """Start of that text in the whole text, in characters."""
        self._queue: list[int] = []
        """Positions in the whole text of the characters that were taken and not yet sent."""

    @property
    def length(self) -> int:
        """Length of the whole text so far, in characters."""
        return self._start + len(self._raw)

    def add(self, logprob: Logprob, text: str) -> None:
        """Add a token.

        Args:
            logprob: The token's log-probability.
            text: The text that became certain with the token.
        """
        if not (self._groups and self._groups[-1].is_unfinished):
            self._groups.append(_TokenGroup())
        group = self._groups[-1]
        group.logprobs.append(logprob)
        group.token_bytes += logprob.token.encode() if logprob.bytes is None else bytes(logprob.bytes)
        self.flush(text)

    def flush(self, text: str) -> None:
        """Add text that became certain without a further token."""
        if not text:
            return
        if not self._groups:
            self._groups.append(_TokenGroup())  # text that the detokenizer added, without a token
        self._raw += text
        for group in self._without_text_after():
            size = len([*takewhile(bool, map(operator.eq, group.withheld, text))])
            group.text += text[:size]
            text = text[size:]
        self._groups[-1].text += text

    def _without_text_after(self) -> list[_TokenGroup]:
        """Return the last group with text and the groups after it, in order."""
        groups: list[_TokenGroup] = []
        for group in reversed(self._groups):
            groups.append(group)
            if group.text:
                break
        return groups[::-1]

    def take(self, text: str, end: int) -> None:
        """Take a part of the text.

        Args:
            text: The part. If it is not contiguous in the text, its characters are searched backwards from its end.
            end: The end of the part in the whole text, in characters.
        """
        places: list[int] = []
        at = end - self._start
        for character in reversed(text):
            at = self._raw.rfind(character, 0, at)
            places.append(self._start + at)
        self._queue += reversed(places)

    def drop(self) -> None:
        """Drop the text that was taken and not sent: a stop string, and the text after it."""
        self._queue.clear()

    def send(self, text: str, channel: object) -> list[Logprob]:
        """Return the tokens whose text is complete with this text.

        Args:
            text: The next part of the text that was taken.
            channel: The channel that it is sent on.
        """
        places, self._queue = self._queue[: len(text)], self._queue[len(text) :]
        if not places:
            return []
        at = self._start
        group_at = iter(self._groups)
        group = next(group_at)
        for place, character in zip(places, text, strict=False):
            while place >= at + len(group.text):
                at += len(group.text)
                group = next(group_at)
            if group.channel != channel:
                group.channel = channel
                group.sent.clear()
            group.sent.append(character)
        return self._release(places[-1] + 1)

    def end(self) -> list[Logprob]:
        """Return the remaining tokens, at the end of the answer."""
        return self._release(self.length, all=True)

    def _release(self, until: int, *, all: bool = False) -> list[Logprob]:
        """Remove and return the tokens of the groups whose text ends before a position in the whole text.

        Args:
            until: The position.
            all: Release all groups.
        """
        released: list[Logprob] = []
        size = 0
        while self._groups:
            group = self._groups[0]
            end = self._start + size + len(group.text)
            if not all and (end > until or group.is_unfinished or (end == self.length and group.withheld)):
                break
            released += self._groups.popleft().adjusted_logprobs()
            size += len(group.text)
        self._start += size
        self._raw = self._raw[size:]
        return released


def _ends_inside_character(data: bytes) -> bool:
    """Return whether bytes start a character without ending it."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
