"""Where a prompt's images and sounds are among its tokens."""

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lmwire_protocol import RequestError

from .media_input import Picture, Sense

WORD: Final = 7
"""Bytes of a digest that one token has room for."""


@dataclass(frozen=True)
class Place:
    """A picture's tokens in a prompt."""

    start: int
    stop: int
    picture: Picture


class ImageLayout:
    """The images and sounds of one prompt.

    Args:
        places: Of its pictures, in their order; at least one.
        tokens: The prompt's beginning, up to its last picture and with that.
    """

    def __init__(self, places: Sequence[Place], tokens: list[int]) -> None:
        self.places = places
        self.end = len(tokens)
        """Tokens up to the last picture, with that."""
        self.names = list(tokens)
        """The same tokens, with numbers of the picture's own in place of those that stand for it: prompts with other
        pictures are other prompts, to whoever keeps what was computed of them."""
        for place in places:
            words = itertools.cycle(_words(place.picture.digest))
            self.names[place.start : place.stop] = itertools.islice(words, place.stop - place.start)

    def named(self, tokens: list[int]) -> list[int]:
        """Tokens that begin as the prompt does, with the pictures' numbers."""
        return [*self.names[: len(tokens)], *tokens[self.end :]]


def expand(text: str, pictures: Sequence[Picture], senses: Iterable[Sense]) -> str:
    """A rendered conversation, with what stands for each picture in place of its placeholder.

    Raises:
        RequestError: invalid_request, when a text holds a placeholder too, or the template drops an image or a sound.
    """
    for sense in senses:
        pieces = text.split(sense.placeholder)
        own = [picture for picture in pictures if picture.mark == sense.mark]
        if own and len(pieces) != len(own) + 1:
            found = f"{len(pieces) - 1} places for {sense.kind}s ({sense.placeholder!r}) and {len(own)} {sense.kind}s"
            problem = f"messages: come to {found}; leave that mark out of texts, and {sense.kind}s out of what is not"
            raise RequestError("invalid_request", f"{problem} shown", field="messages")
        if own:
            text = pieces[0] + "".join(picture.text + piece for picture, piece in zip(own, pieces[1:], strict=True))
    return text


def find_layout(tokens: list[int], pictures: Sequence[Picture]) -> ImageLayout | None:
    """Where the pictures are, those of one kind in their order; None without any.

    Raises:
        RequestError: invalid_request, when a text holds tokens that stand for pictures, or the prompt ends in one.
    """
    if not pictures:
        return None
    waiting: dict[int, deque[Picture]] = {}
    for picture in pictures:
        waiting.setdefault(picture.mark, deque()).append(picture)
    places: list[Place] = []
    at = 0
    while at < len(tokens):
        if tokens[at] not in waiting:
            at += 1
            continue
        if not waiting[tokens[at]]:
            raise _stray()
        picture = waiting[tokens[at]].popleft()
        places.append(Place(at, at + len(picture.tokens), picture))
        if tokens[at : places[-1].stop] != picture.tokens:
            raise _stray()
        at = places[-1].stop
    if any(waiting.values()):
        raise _stray()
    if places[-1].stop == len(tokens):
        problem = "messages: the prompt ends in an image or a sound; let the assistant's turn or a text follow"
        raise RequestError("invalid_request", problem, field="messages")
    return ImageLayout(places, tokens[: places[-1].stop])


def _stray() -> RequestError:
    problem = "messages: a text holds the model's own mark for a part of an image or a sound; leave it out"
    return RequestError("invalid_request", problem, field="messages")


def _words(digest: bytes) -> list[int]:
    """A digest as numbers beyond every vocabulary, of 63 bits at most as the cache on disk has them."""
    parts = (digest[start : start + WORD] for start in range(0, len(digest), WORD))
    return [1 << 8 * WORD | int.from_bytes(part, "little") for part in parts]
