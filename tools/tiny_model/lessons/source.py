"""Random choices that keep evaluation apart from training."""

import random
import zlib
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from .words import CONSONANTS, LISTED, LISTS, SCRIPTS, SYLLABLES, VOWELS

T = TypeVar("T")


class Source:
    """The random choices of one seed.

    Every list that lessons draw from has two sides, and so have made-up words and pairs of numbers: training sees one
    side only, evaluation the other only. So no prompt of the evaluation is in the training text, whatever the seeds.
    """

    def __init__(self, seed: int, *, held_out: bool = False) -> None:
        self.random = random.Random(seed)
        self.held_out = held_out

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < probability

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included.

        Args:
            low: The smallest number.
            high: The largest number.
        """
        return self.random.randint(low, high)

    def any(self, items: Sequence[T]) -> T:
        """Return an item of either side, for choices that training and evaluation may share."""
        return self.random.choice(items)

    def one(self, items: tuple[T, ...]) -> T:
        """Return an item of this side. Every fifth item is held out."""
        return self.random.choice(_side(items, self.held_out))

    def numbers(self, top: int) -> tuple[int, int]:
        """Return two numbers from 0 to `top`. Every tenth pair is held out, in either order."""
        while True:
            pair = self.between(0, top), self.between(0, top)
            if self._on_side(f"{min(pair)} {max(pair)}", 10):
                return pair

    def invented(self) -> str:
        """Return a made-up word: of syllables, of two real words' halves, or of letters."""
        while True:
            kind = self.between(0, 9)
            if kind < 4:
                word = "".join(self.random.choices(SYLLABLES, k=self.between(2, 4)))
            elif kind < 7:
                word = self._half(0) + self._half(1)
            else:
                letters = zip(self.random.choices(CONSONANTS, k=4), self.random.choices(VOWELS, k=4), strict=True)
                word = "".join(pair[0] + pair[1] for pair in letters)[: self.between(3, 8)]
            if word not in LISTED and self._on_side(word, 5):
                return word

    def identifier(self, words: tuple[str, ...]) -> str:
        """Return a word of the list or, more often, a made-up one."""
        return self.one(words) if self.chance(0.4) else self.invented()

    def foreign(self) -> str:
        """Return made-up words in one of many scripts, or emoji."""
        letters = self.any(SCRIPTS)
        while True:
            words = ["".join(self.random.choices(letters, k=self.between(1, 6))) for _ in range(self.between(1, 3))]
            if self._on_side(words[0], 5):
                return " ".join(words)

    def _half(self, which: int) -> str:
        word = self.one(self.any(LISTS)).lower()
        middle = len(word) // 2
        return (word[: middle + 1], word[middle:])[which]

    def _on_side(self, text: str, share: int) -> bool:
        return (zlib.crc32(text.encode()) % share == 0) == self.held_out


@cache
def _side(items: tuple[T, ...], held_out: bool) -> tuple[T, ...]:
    return items[4::5] if held_out else tuple(item for index, item in enumerate(items) if index % 5 != 4)
