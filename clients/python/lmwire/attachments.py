"""Images and sounds on their way into a request."""

import base64
from pathlib import Path

from .options import MediaDict, MediaPartDict


def media(source: str | Path | bytes) -> MediaDict:
    """An image or a sound that goes along with the request, so that the worker needs no access to the file.

    Args:
        source: A file on this machine, which is read now, or the content of one.

    Raises:
        OSError: it cannot be read.
    """
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    return {"data": base64.b64encode(content).decode()}


def image_part(source: str | Path | bytes) -> MediaPartDict:
    """An image as a part of a message; see `media`."""
    return {"type": "image", "media": media(source)}


def sound_part(source: str | Path | bytes) -> MediaPartDict:
    """A sound as a part of a message; see `media`."""
    return {"type": "audio", "media": media(source)}
