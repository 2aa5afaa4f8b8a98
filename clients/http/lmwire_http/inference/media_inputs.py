"""Images and sounds that a request names instead of holding them. The worker decides which it reads."""

from typing import Final
from urllib.parse import unquote, urlsplit

from lmwire import MediaDict

from ..errors import invalid_field

_FETCHED: Final = frozenset({"http", "https"})
_LOCAL: Final = frozenset({"", "localhost"})


def named_media(name: str, field: str) -> MediaDict | None:
    """Return what an address or a file URL names; None if the name is neither.

    Args:
        name: As the client wrote it.
        field: The path of the field that holds it.

    Raises:
        ApiError: It is a file on another machine.
    """
    scheme = name.partition(":")[0].lower()
    if scheme in _FETCHED:
        return {"url": name}
    if scheme != "file":
        return None
    host, path = _host_and_path(name)
    if host not in _LOCAL or not path.startswith("/"):
        problem = "a file's URL names a file on the server's machine, such as file:///pictures/cat.png"
        raise invalid_field(f"{field}: {problem}", field)
    return {"path": path}


def image_media(name: str, field: str) -> MediaDict:
    """Return the image that a data URI holds, or that an address or an absolute path names.

    Args:
        name: As the client wrote it.
        field: The path of the field that holds it.

    Raises:
        ApiError: It is none of these.
    """
    if name[:5].lower() == "data:":
        return {"data": name}
    if name.startswith("/"):
        return {"path": name}
    if media := named_media(name, field):
        return media
    problem = "must be a data URI, such as data:image/png;base64,…, an http or https address, or a file's absolute path"
    raise invalid_field(f"{field}: {problem}", field)


def sound_media(data: str, field: str) -> MediaDict:
    """Return the sound that base64 holds, or that an address or a file's URL names.

    A plain path is not told from base64, which may begin with a slash.

    Args:
        data: As the client wrote it.
        field: The path of the field that holds it.

    Raises:
        ApiError: It is a file on another machine.
    """
    return named_media(data, field) or {"data": data}


def _host_and_path(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""
    return parts.netloc.lower(), unquote(parts.path)
