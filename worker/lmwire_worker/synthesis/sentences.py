"""Split texts into parts that a model can speak at once."""

import re
from collections.abc import Iterator
from typing import Final

_SENTENCE_END: Final = re.compile(r"(?<=[.!?;:])\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n+")
"""The second part has the marks of Chinese and Japanese, which no space follows."""


def split_text(text: str, limit: int) -> Iterator[str]:
    """Yield a text in parts that end with a sentence, or with a word if a sentence is too long.

    Args:
        text: The text.
        limit: Maximum number of characters of a part.
    """
    part = ""
    for sentence in _SENTENCE_END.split(text):
        for piece in _cut(sentence.strip(), limit):
            if part and len(part) + 1 + len(piece) > limit:
                yield part
                part = piece
            else:
                part = f"{part} {piece}" if part else piece
    if part:
        yield part


def _cut(sentence: str, limit: int) -> Iterator[str]:
    """Yield a sentence, cut between words, or inside of words that are longer than the limit."""
    while len(sentence) > limit:
        end = sentence.rfind(" ", 1, limit + 1)
        end = end if end > 0 else limit
        yield sentence[:end].rstrip()
        sentence = sentence[end:].lstrip()
    if sentence:
        yield sentence
