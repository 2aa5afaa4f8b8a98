"""Find a prompt's images and sounds among its tokens."""

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from lmwire_protocol import RequestError

from .media_input import MediaInput

if TYPE_CHECKING:
    from .input_builder import Modality  # it imports what decodes media

DIGEST_BYTES: Final = 7
"""Bytes of a digest that one prefix key holds."""


class PlaceholderRange(Struct, frozen=True):
    """The tokens of one media input in a prompt, from `start` up to `stop`."""

    start: int
    stop: int
    media_input: MediaInput


class MediaLayout:
    """The images and sounds of one prompt.

    Args:
        ranges: The ranges of its media inputs, in order; at least one.
        tokens: The prompt's tokens up to the last media input, inclusive.
    """

    def __init__(self, ranges: Sequence[PlaceholderRange], tokens: list[int]) -> None:
        self.ranges = ranges
        self.end = len(tokens)
        """Number of tokens up to the last media input, inclusive."""
        self.prefix_keys = list(tokens)
        """The same tokens, with numbers of the media's digests in place of placeholder tokens. So the prefix cache
        tells prompts with other media apart."""
        for place in ranges:
            words = itertools.cycle(_digest_numbers(place.media_input.digest))
            self.prefix_keys[place.start : place.stop] = itertools.islice(words, place.stop - place.start)

    def cache_keys(self, tokens: list[int]) -> list[int]:
        """Return the prefix cache's keys for tokens that begin as the prompt does."""
        return [*self.prefix_keys[: len(tokens)], *tokens[self.end :]]


def expand_placeholders(text: str, media_inputs: Sequence[MediaInput], modalities: "Iterable[Modality]") -> str:
    """Return a rendered conversation with each placeholder replaced by the text of its media input.

    Args:
        text: The rendered conversation.
        media_inputs: The media inputs, in order.
        modalities: The kinds of media that the model takes.

    Raises:
        RequestError: invalid_request, if a text contains a placeholder, or the template drops an image or a sound.
    """
    for modality in modalities:
        pieces = text.split(modality.placeholder)
        own = [one for one in media_inputs if one.placeholder_token == modality.placeholder_token]
        if own and len(pieces) != len(own) + 1:
            raise _count_mismatch(len(pieces) - 1, len(own), modality)
        if own:
            text = pieces[0] + "".join(one.text + piece for one, piece in zip(own, pieces[1:], strict=True))
    return text


def find_layout(tokens: list[int], media_inputs: Sequence[MediaInput]) -> MediaLayout | None:
    """Return the layout of a prompt's media inputs; None without any.

    Args:
        tokens: The prompt's tokens.
        media_inputs: The media inputs. Those of one kind occur in this order.

    Raises:
        RequestError: invalid_request, if a text contains placeholder tokens, or the prompt ends in a media input.
    """
    if not media_inputs:
        return None
    waiting: dict[int, deque[MediaInput]] = {}
    for media_input in media_inputs:
        waiting.setdefault(media_input.placeholder_token, deque()).append(media_input)
    ranges: list[PlaceholderRange] = []
    at = 0
    while at < len(tokens):
        if tokens[at] not in waiting:
            at += 1
            continue
        if not waiting[tokens[at]]:
            raise _stray_token()
        media_input = waiting[tokens[at]].popleft()
        ranges.append(PlaceholderRange(at, at + len(media_input.tokens), media_input))
        if tokens[at : ranges[-1].stop] != media_input.tokens:
            raise _stray_token()
        at = ranges[-1].stop
    if any(waiting.values()):
        raise _stray_token()
    if ranges[-1].stop == len(tokens):
        problem = "messages: the prompt ends in an image or a sound; let the assistant's turn or a text follow"
        raise RequestError("invalid_request", problem, field="messages")
    return MediaLayout(ranges, tokens[: ranges[-1].stop])


def _count_mismatch(places: int, sent: int, modality: "Modality") -> RequestError:
    kind, placeholder = modality.kind, modality.placeholder
    problem = (
        f"messages: come to {places} places for {kind}s ({placeholder!r}) and {sent} {kind}s; leave that mark out of "
        f"texts, and {kind}s out of what is not shown"
    )
    return RequestError("invalid_request", problem, field="messages")


def _stray_token() -> RequestError:
    problem = "messages: a text holds the model's own mark for a part of an image or a sound; leave it out"
    return RequestError("invalid_request", problem, field="messages")


def _digest_numbers(digest: bytes) -> list[int]:
    """Return a digest as numbers beyond every vocabulary, of at most 63 bits as the cache on disk stores them."""
    parts = (digest[start : start + DIGEST_BYTES] for start in range(0, len(digest), DIGEST_BYTES))
    return [1 << 8 * DIGEST_BYTES | int.from_bytes(part, "little") for part in parts]
