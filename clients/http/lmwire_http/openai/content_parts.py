"""Parts of a message's content in OpenAI's API, and their conversion for the client library."""

from itertools import pairwise
from typing import Any, TypeAlias

from msgspec import Struct

from lmwire import MediaPartDict, TextPartDict

from ..errors import invalid_field
from ..inference.media import audio_input, image_input
from ..limits import JsonObject, Parts

PartDict: TypeAlias = TextPartDict | MediaPartDict


class _Part(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    prompt_cache_breakpoint: JsonObject | None = None
    """Ignored: shared prefixes are always cached."""


class TextPart(_Part, tag="text"):
    """A text."""

    text: str


class RefusalPart(_Part, tag="refusal"):
    """A refusal of the assistant. The model reads it as text."""

    refusal: str


class ImageUrl(Struct, kw_only=True, forbid_unknown_fields=True):
    """The location of an image."""

    url: str
    """A data URI, an http or https URL (needs `--media-urls`), or a file's path or URL (needs `--media-dir`)."""
    detail: str | None = None
    """Ignored: the model sees the image at its own resolution."""


class ImagePart(_Part, tag="image_url"):
    """An image."""

    image_url: ImageUrl | str
    """The location, which may also be its URL alone."""


class InputAudio(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sound."""

    data: str
    """Base64, an http or https URL (needs `--media-urls`), or a file's path or URL (needs `--media-dir`)."""
    format: str | None = None
    """Ignored: the content shows its format."""


class AudioPart(_Part, tag="input_audio"):
    """A sound."""

    input_audio: InputAudio


class FilePart(_Part, tag="file"):
    """A file. Not supported."""

    file: Any = None


Part: TypeAlias = TextPart | RefusalPart | ImagePart | AudioPart | FilePart
Content: TypeAlias = str | Parts[Part]


def wire_content(content: Content, path: str) -> str | list[PartDict]:
    """Return a message's content as the client library takes it. A newline separates adjacent texts.

    Args:
        content: The content in the request.
        path: The path of the message in the request.

    Raises:
        ApiError: A part is not supported.
    """
    if isinstance(content, str):
        return content
    return separate_texts([_wire_part(part, f"{path}.content[{place}]") for place, part in enumerate(content)])


def separate_texts(parts: list[PartDict]) -> list[PartDict]:
    """Return the parts with a newline between adjacent texts, which the worker joins as they are."""
    for part, following in pairwise(parts):
        if part["type"] == "text" and following["type"] == "text":
            part["text"] += "\n"
    return parts


def _wire_part(part: Part, path: str) -> PartDict:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case RefusalPart():
            return {"type": "text", "text": part.refusal}
        case ImagePart():
            if isinstance(part.image_url, str):
                return {"type": "image", "media": image_input(part.image_url, f"{path}.image_url")}
            return {"type": "image", "media": image_input(part.image_url.url, f"{path}.image_url.url")}
        case AudioPart():
            return {"type": "audio", "media": audio_input(part.input_audio.data, f"{path}.input_audio.data")}
        case FilePart():
            raise invalid_field(f"{path}: files are not supported; send their text as a part of type text", path)
