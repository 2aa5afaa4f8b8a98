"""Strings that an answer must not contain.

The newest tokens are held back while their text may begin such a string. Where one is complete, the choice goes back
to the token that began it. From then on, that token is banned in that place, so that the model goes on with another.

What is taken back may have followed another beginning, which was released, since its next token did not fit. A string
with that beginning is banned as well: the choice goes back to the first token that was not released.
"""

import codecs
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from .sampling.logprobs import LogprobHandle

MAX_ATTEMPTS: Final = 256
"""Maximum number of times that a choice goes back without getting ahead, so that it ends."""
MAX_CHARACTER_BYTES: Final = 4
_ERRORS: Final = "surrogateescape"
"""Keeps each byte that belongs to no character, so that bytes and characters can be counted against each other."""


class GeneratedToken(Struct, frozen=True):
    """A token, as the batch gives it to a row."""

    token: int
    logprob: LogprobHandle | None
    drafted: bool


class BannedStrings:
    """The banned strings of one choice, and the tokens that are held back for them.

    Args:
        strings: The strings. Upper and lower case are equal.
        token_bytes: Returns the bytes of a token.
        end_tokens: The tokens that end the answer. They have no text.
    """

    def __init__(
        self, strings: Sequence[str], token_bytes: Callable[[int], bytes], end_tokens: Collection[int]
    ) -> None:
        self._strings = sorted({_fold(string) for string in strings})
        self._longest = max(map(len, self._strings))
        self._token_bytes = token_bytes
        self._ends = end_tokens
        self._held: list[GeneratedToken] = []
        self._released = 0
        self._before = b""
        """The end of the released text, with which a banned string may begin."""
        self._banned: dict[int, set[int]] = {}
        """The banned tokens by place: the number of the answer's tokens before it."""
        self._attempts = 0
        self.has_failed = False
        """True if the answer cannot go on without a banned string."""

    @property
    def held_tokens(self) -> list[int]:
        """The tokens that are held back."""
        return [held.token for held in self._held]

    def banned_at(self, place: int) -> Collection[int]:
        """Return the tokens that are banned after `place` tokens of the answer."""
        return self._banned.get(place, ())

    def add(self, token: GeneratedToken) -> bool:
        """Add the newest token, and return whether the answer stays. Otherwise some of its tokens are taken back."""
        self._held.append(token)
        if token.token in self._ends:
            return True
        data, starts = self._bytes()
        text, _ = _decoded(data)
        folded = _fold(text)
        found = [at for string in self._strings if (at := folded.find(string)) >= 0]
        if not found:
            return True
        self._take_back(_token_at(starts, _length(text[: min(found)])))
        return False

    def release(self, room: int) -> list[GeneratedToken]:
        """Return the tokens that can be part of no banned string any more.

        Args:
            room: Maximum number of tokens of the answer from the first held one on. At the end, none is held.
        """
        count = len(self._held)
        if count < room and count and self._held[-1].token not in self._ends:
            count = self._certain()
        tokens = self._held[:count]
        if tokens:
            data, starts = self._bytes()
            self._before = data[: [*starts, len(data)][count]][-MAX_CHARACTER_BYTES * self._longest :]
            del self._held[:count]
            self._released += len(tokens)
            self._attempts = 0
            self._banned = {place: banned for place, banned in self._banned.items() if place >= self._released}
        return tokens

    def _take_back(self, index: int) -> None:
        """Drop the held tokens from an index on, and ban the first of them there."""
        place, token = self._released + index, self._held[index].token
        del self._held[index:]
        self._banned = {other: banned for other, banned in self._banned.items() if other <= place}
        banned = self._banned.setdefault(place, set())
        self._attempts += 1
        self.has_failed = token in banned or self._attempts > MAX_ATTEMPTS
        banned.add(token)

    def _certain(self) -> int:
        """Return the number of held tokens before the one with which a banned string may begin."""
        data, starts = self._bytes()
        text, unfinished = _decoded(data)
        folded = _fold(text)
        begun = next(size for size in range(min(len(text), self._longest - 1), -1, -1) if self._begins(folded, size))
        if not begun and not unfinished:
            return len(starts)
        return _token_at(starts, len(data) - unfinished - _length(text[len(text) - begun :]))

    def _begins(self, text: str, size: int) -> bool:
        """Return whether a banned string begins with the last `size` characters of a text. All begin with none."""
        end = text[len(text) - size :]
        at = bisect_left(self._strings, end)
        return not size or (at < len(self._strings) and self._strings[at].startswith(end))

    def _bytes(self) -> tuple[bytes, list[int]]:
        """Return the end of the released text with the text of the held tokens, and where each of these starts."""
        parts = [self._before, *(self._token_bytes(held.token) for held in self._held)]
        return b"".join(parts), [*accumulate(map(len, parts[:-1]))]


def _token_at(starts: Sequence[int], byte: int) -> int:
    """Return the index of the held token that has a byte, or of the first one if the byte comes before it."""
    return max(0, bisect_right(starts, byte) - 1)


def _decoded(data: bytes) -> tuple[str, int]:
    """Return the characters, and the number of bytes of an unfinished one at the end."""
    decoder = codecs.getincrementaldecoder("utf-8")(_ERRORS)
    return decoder.decode(data), len(decoder.getstate()[0])


def _length(text: str) -> int:
    """Return the number of bytes of decoded characters."""
    return len(text.encode(errors=_ERRORS))


def _fold(text: str) -> str:
    """Return a text in lower case, with as many characters, each of which depends on no other."""
    if text.isascii():
        return text.lower()
    return "".join(lower if len(lower := character.lower()) == 1 else character for character in text)
