"""Files as media of a request."""

import base64
from pathlib import Path

from .options import MediaDict, MediaPartDict


def media(source: str | Path | bytes) -> MediaDict:
    """Return an image or a recording whose content is sent, so that the worker needs no access to the file.

    Args:
        source: The path of a file on this machine, which is read now, or the content of a file.

    Raises:
        OSError: The file cannot be read.
    """
    content = source if isinstance(source, bytes) else Path(source).read_bytes()
    return {"data": base64.b64encode(content).decode()}


def image_part(source: str | Path | bytes) -> MediaPartDict:
    """Return an image as a part of a message; `media` has the argument."""
    return {"type": "image", "media": media(source)}


def audio_part(source: str | Path | bytes) -> MediaPartDict:
    """Return a recording as a part of a message; `media` has the argument."""
    return {"type": "audio", "media": media(source)}
