"""Which tokens the text of an answer is of, for answers whose log-probabilities are asked for.

A token's text may be held back, may turn out to be a marker's, a call's or a stop string's, or may be so in part. So a
token waits here until that is known, and is then sent with the text that it is of. What of its own text the answer
lacks is said by `Logprob.text`: joined, the texts of the tokens are the text of the answer.
"""

import operator
from collections import deque
from itertools import takewhile

from lmwire_protocol.events import Logprob


class _Group:
    """Tokens whose text cannot be told apart, such as those that make up one character. Most have one token."""

    __slots__ = ("channel", "logprobs", "own", "shown", "text")

    def __init__(self) -> None:
        self.logprobs: list[Logprob] = []
        self.own = b""
        """The tokens' own bytes."""
        self.text = ""
        """What the detokenizer made of them."""
        self.channel: object = None
        """Where its text was sent last. It is told of that alone."""
        self.shown: list[str] = []

    @property
    def open(self) -> bool:
        """Whether the last token ends inside a character."""
        text = self.text.encode()
        rest = self.own[len(text) :]
        return self.own.startswith(text) and bool(rest) and _is_unfinished(rest)

    @property
    def missing(self) -> str:
        """The text that the detokenizer holds back of bytes that are not text: some see the next token first."""
        text = self.own.decode(errors="replace")
        return text.removeprefix(self.text) if "\ufffd" in text and text.startswith(self.text) else ""

    def described(self) -> list[Logprob]:
        """The log-probabilities, with what of the tokens' text is in the answer where that is not all of it."""
        shown = "".join(self.shown)
        if shown.encode() == self.own or not self.logprobs:
            return self.logprobs
        for logprob in self.logprobs:
            logprob.text = ""
        self.logprobs[-1].text = shown
        return self.logprobs


class Attribution:
    """The tokens of one choice that wait, and the text of theirs that waits.

    Its owner adds each token with the text that became certain, takes the parts that the text is told apart into, and
    says what is sent of them.
    """

    def __init__(self) -> None:
        self._groups: deque[_Group] = deque()
        self._raw = ""
        """The text from the first group on."""
        self._start = 0
        """Where that begins in the whole text."""
        self._queue: list[int] = []
        """Places in the whole text of the characters that were taken and not yet sent."""

    @property
    def length(self) -> int:
        """Of the whole text so far."""
        return self._start + len(self._raw)

    def add(self, logprob: Logprob, text: str) -> None:
        """Add a token and the text that became certain with it."""
        if not (self._groups and self._groups[-1].open):
            self._groups.append(_Group())
        group = self._groups[-1]
        group.logprobs.append(logprob)
        group.own += logprob.token.encode() if logprob.bytes is None else bytes(logprob.bytes)
        self.flush(text)

    def flush(self, text: str) -> None:
        """Add text that became certain with no further token."""
        if not text:
            return
        if not self._groups:
            self._groups.append(_Group())  # text of the detokenizer's own, which no token stands for
        self._raw += text
        for group in self._without_text_after():
            size = len([*takewhile(bool, map(operator.eq, group.missing, text))])
            group.text += text[:size]
            text = text[size:]
        self._groups[-1].text += text

    def _without_text_after(self) -> list[_Group]:
        """Return the newest groups, in order: the last one with text, and those after it."""
        groups: list[_Group] = []
        for group in reversed(self._groups):
            groups.append(group)
            if group.text:
                break
        return groups[::-1]

    def take(self, text: str, end: int) -> None:
        """Take a part of the text, which ends at a place in the whole text.

        Args:
            text: The part. Where it is not one stretch of the text, its characters are looked for from the end.
            end: The place.
        """
        places: list[int] = []
        at = end - self._start
        for character in reversed(text):
            at = self._raw.rfind(character, 0, at)
            places.append(self._start + at)
        self._queue += reversed(places)

    def drop(self) -> None:
        """Drop what was taken and not sent: a stop string, and what follows it."""
        self._queue.clear()

    def send(self, text: str, channel: object) -> list[Logprob]:
        """Return the tokens that are known with this text.

        Args:
            text: The next of what was taken.
            channel: Where it is sent.
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
                group.shown.clear()
            group.shown.append(character)
        return self._release(places[-1] + 1)

    def end(self) -> list[Logprob]:
        """Return the tokens that are left: nothing further of their text is sent."""
        return self._release(self.length, all=True)

    def _release(self, until: int, *, all: bool = False) -> list[Logprob]:
        """The tokens of the groups whose text ends before a place, beyond which nothing is known."""
        released: list[Logprob] = []
        size = 0
        while self._groups:
            group = self._groups[0]
            end = self._start + size + len(group.text)
            if not all and (end > until or group.open or (end == self.length and group.missing)):
                break
            released += self._groups.popleft().described()
            size += len(group.text)
        self._start += size
        self._raw = self._raw[size:]
        return released


def _is_unfinished(data: bytes) -> bool:
    """Return whether these bytes begin a character, and do not end it."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
