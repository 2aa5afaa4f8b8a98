"""Images and audio that requests name by URL or path. The worker decides which of them it reads."""

from typing import Final
from urllib.parse import unquote, urlsplit

from lmwire import MediaDict

from ..errors import invalid_field

_URL_SCHEMES: Final = frozenset({"http", "https"})
_LOCAL_HOSTS: Final = frozenset({"", "localhost"})
_SUFFIX_CHARACTERS: Final = 16
"""Characters at a path's end that contain the dot of its suffix, such as `.flac`."""


def media_reference(name: str, field: str) -> MediaDict | None:
    """Return the media that a URL names; None if the text is not a URL.

    Args:
        name: The text in the request.
        field: The path of the field that holds it.

    Raises:
        ApiError: The URL names a file on another machine.
    """
    scheme = name.partition(":")[0].lower()
    if scheme in _URL_SCHEMES:
        return {"url": name}
    if scheme != "file":
        return None
    host, path = _host_and_path(name)
    if host not in _LOCAL_HOSTS or not path.startswith("/"):
        problem = "a file's URL names a file on the server's machine, such as file:///pictures/cat.png"
        raise invalid_field(f"{field}: {problem}", field)
    return {"path": path}


def image_input(name: str, field: str) -> MediaDict:
    """Return the image that a data URI holds, or that a URL or an absolute path names.

    Args:
        name: The text in the request.
        field: The path of the field that holds it.

    Raises:
        ApiError: The text is none of these.
    """
    if name[:5].lower() == "data:":
        return {"data": name}
    if name.startswith("/"):
        return {"path": name}
    if media := media_reference(name, field):
        return media
    problem = "must be a data URI, such as data:image/png;base64,…, an http or https address, or a file's absolute path"
    raise invalid_field(f"{field}: {problem}", field)


def audio_input(data: str, field: str) -> MediaDict:
    """Return the audio that base64 holds, or that a URL or an absolute path names.

    Base64 may also start with a slash, but unlike the name of a sound's file it has no dot.

    Args:
        data: The text in the request.
        field: The path of the field that holds it.

    Raises:
        ApiError: The URL names a file on another machine.
    """
    if data.startswith("/") and "." in data[-_SUFFIX_CHARACTERS:]:
        return {"path": data}
    return media_reference(data, field) or {"data": data}


def _host_and_path(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""
    return parts.netloc.lower(), unquote(parts.path)
