"""Where a prompt's images are among its tokens."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lmwire_protocol import RequestError

from .pictures import Picture

WORD: Final = 7
"""Bytes of a digest that one token has room for."""


@dataclass(frozen=True)
class Place:
    """A picture's tokens in a prompt."""

    start: int
    stop: int
    picture: Picture


class ImageLayout:
    """The images of one prompt.

    Args:
        places: Of its pictures, in their order; at least one.
        tokens: The prompt's beginning, up to its last image and with that.
    """

    def __init__(self, places: Sequence[Place], tokens: list[int]) -> None:
        self.places = places
        self.end = len(tokens)
        """Tokens up to the last image, with that."""
        self.names = list(tokens)
        """The same tokens, with numbers of the image's own in place of those that stand for it: prompts with other
        images are other prompts, to whoever keeps what was computed of them."""
        for place in places:
            words = itertools.cycle(_words(place.picture.digest))
            self.names[place.start : place.stop] = itertools.islice(words, place.stop - place.start)

    def named(self, tokens: list[int]) -> list[int]:
        """Tokens that begin as the prompt does, with the images' numbers."""
        return [*self.names[: len(tokens)], *tokens[self.end :]]


def expand(text: str, pictures: Sequence[Picture], placeholder: str) -> str:
    """A rendered conversation, with what stands for each picture in place of its placeholder.

    Raises:
        RequestError: invalid_request, when a text holds the placeholder too, or the template drops an image.
    """
    pieces = text.split(placeholder)
    if len(pieces) != len(pictures) + 1:
        found = f"{len(pieces) - 1} places for images ({placeholder!r}) and {len(pictures)} images"
        problem = f"messages: come to {found}; leave that mark out of texts, and images out of what is not shown"
        raise RequestError("invalid_request", problem, field="messages")
    return pieces[0] + "".join(picture.text + piece for picture, piece in zip(pictures, pieces[1:], strict=True))


def find_layout(tokens: list[int], pictures: Sequence[Picture], image_token: int) -> ImageLayout | None:
    """Where the pictures are; None without any.

    Raises:
        RequestError: invalid_request, when a text holds tokens that stand for images, or the prompt ends in one.
    """
    if not pictures:
        return None
    places: list[Place] = []
    end = 0
    for picture in pictures:
        start = _index(tokens, image_token, end)
        end = start + len(picture.tokens)
        if tokens[start:end] != picture.tokens:
            raise _stray()
        places.append(Place(start, end, picture))
    if image_token in tokens[end:]:
        raise _stray()
    if end == len(tokens):
        problem = "messages: the prompt ends in an image; let the assistant's turn or a text follow"
        raise RequestError("invalid_request", problem, field="messages")
    return ImageLayout(places, tokens[:end])


def _index(tokens: list[int], token: int, start: int) -> int:
    try:
        return tokens.index(token, start)
    except ValueError:
        raise _stray() from None


def _stray() -> RequestError:
    problem = "messages: a text holds the model's own mark for a part of an image; leave it out"
    return RequestError("invalid_request", problem, field="messages")


def _words(digest: bytes) -> list[int]:
    """A digest as numbers beyond every vocabulary, of 63 bits at most as the cache on disk has them."""
    parts = (digest[start : start + WORD] for start in range(0, len(digest), WORD))
    return [1 << 8 * WORD | int.from_bytes(part, "little") for part in parts]
