"""Find the images and sounds that requests refer to."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from lmwire_protocol import (
    AudioPart,
    Chat,
    Embed,
    Generate,
    ImagePart,
    Media,
    Speak,
    TextPart,
    Tokenize,
    TokensPart,
    Transcribe,
)

MediaKind = Literal["image", "sound"]


class MediaRef(Struct, frozen=True):
    """An image or a sound that a request refers to."""

    field: str
    """The path of its `media`, such as `messages[1].content[0].media`."""
    kind: MediaKind
    media: Media


def find_media_refs(request: Generate | Chat | Tokenize | Embed | Transcribe | Speak) -> list[MediaRef]:
    """Return a request's images and sounds, in its order."""
    if isinstance(request, Transcribe):
        return [MediaRef("audio", "sound", request.audio)]
    return [
        MediaRef(f"{path}.media", "sound" if isinstance(part, AudioPart) else "image", part.media)
        for path, part in _parts(request)
        if isinstance(part, ImagePart | AudioPart)
    ]


def _parts(
    request: Generate | Chat | Tokenize | Embed | Speak,
) -> Iterator[tuple[str, str | TextPart | ImagePart | AudioPart | TokensPart]]:
    if isinstance(request, Embed):
        for index, part in enumerate(request.input):
            yield f"input[{index}]", part
    elif isinstance(request, Chat | Tokenize):
        for index, message in enumerate(request.messages or ()):
            for at, part in enumerate(message.content if isinstance(message.content, list) else ()):
                yield f"messages[{index}].content[{at}]", part
