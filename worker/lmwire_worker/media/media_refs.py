"""Where requests refer to images and sounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lmwire_protocol import AudioPart, Chat, Embed, Generate, ImagePart, Media, TextPart, Tokenize, Transcribe

Kind = Literal["image", "sound"]


@dataclass(frozen=True, slots=True)
class Item:
    """An image or a sound that a request refers to."""

    field: str
    """The path of its `media`, as `messages[1].content[0].media`."""
    kind: Kind
    media: Media


def items_of(request: Generate | Chat | Tokenize | Embed | Transcribe) -> list[Item]:
    """A request's images and sounds, in the order in which it names them."""
    if isinstance(request, Transcribe):
        return [Item("audio", "sound", request.audio)]
    return [
        Item(f"{path}.media", "sound" if isinstance(part, AudioPart) else "image", part.media)
        for path, part in _parts(request)
        if isinstance(part, ImagePart | AudioPart)
    ]


def _parts(request: Generate | Chat | Tokenize | Embed) -> Iterator[tuple[str, str | TextPart | ImagePart | AudioPart]]:
    if isinstance(request, Embed):
        for index, part in enumerate(request.input):
            yield f"input[{index}]", part
    elif isinstance(request, Chat | Tokenize):
        for index, message in enumerate(request.messages or ()):
            for at, part in enumerate(message.content if isinstance(message.content, list) else ()):
                yield f"messages[{index}].content[{at}]", part
