"""The parts of a message: what OpenAI's API has, and what they are on the wire."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lmwire import MediaPartDict, TextPartDict

from ..errors import invalid_field
from ..inference.media_inputs import image_media, sound_media

PartDict: TypeAlias = TextPartDict | MediaPartDict


class _Part(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    prompt_cache_breakpoint: dict[str, Any] | None = None
    """Harmless: what is alike at the beginning of prompts is cached without it."""


class TextPart(_Part, tag="text"):
    """A piece of text."""

    text: str


class RefusalPart(_Part, tag="refusal"):
    """What an assistant said when it refused; text to the model."""

    refusal: str


class ImageUrl(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where an image is."""

    url: str
    """A data URI, an http or https address, which needs `--media-urls`, or a file's path or URL: `--media-dir`."""
    detail: str | None = None
    """Harmless: the model sees the image in its own resolution."""


class ImagePart(_Part, tag="image_url"):
    """An image."""

    image_url: ImageUrl


class InputAudio(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sound."""

    data: str
    """Base64, an http or https address, which needs `--media-urls`, or a file's URL, which needs `--media-dir`."""
    format: Literal["wav", "mp3"] | None = None
    """Harmless: its content says what it is."""


class AudioPart(_Part, tag="input_audio"):
    """A sound."""

    input_audio: InputAudio


class FilePart(_Part, tag="file"):
    """A file; refused."""

    file: Any = None


Part: TypeAlias = TextPart | RefusalPart | ImagePart | AudioPart | FilePart
Content: TypeAlias = str | list[Part]


def wire_content(content: Content, path: str) -> str | list[PartDict]:
    """The content of the message at `path`, as the client library takes it.

    Raises:
        ApiError: a part of it cannot be sent.
    """
    if isinstance(content, str):
        return content
    return [_wire_part(part, f"{path}.content[{place}]") for place, part in enumerate(content)]


def _wire_part(part: Part, path: str) -> PartDict:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case RefusalPart():
            return {"type": "text", "text": part.refusal}
        case ImagePart():
            return {"type": "image", "media": image_media(part.image_url.url, f"{path}.image_url.url")}
        case AudioPart():
            return {"type": "audio", "media": sound_media(part.input_audio.data, f"{path}.input_audio.data")}
        case FilePart():
            raise invalid_field(f"{path}: files are not read here; send their text as a part of type text", path)
