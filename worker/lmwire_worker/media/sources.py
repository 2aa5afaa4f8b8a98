"""Read the bytes of an image or a sound from a request, a file or an address."""

import base64
from typing import Final

from .files import read_file
from .media_error import MediaError, check_size, check_type
from .media_refs import MediaKind, MediaRef
from .policy import MediaPolicy


def read_source(item: MediaRef, policy: MediaPolicy) -> bytes:
    """Return the bytes of a medium: at least one, at most `policy.max_bytes`.

    Args:
        item: The reference.
        policy: The permissions and limits.

    Raises:
        MediaError: It cannot be read.
    """
    media = item.media
    if media.data is not None:
        content = _decode(media.data, item.kind, policy)
    elif media.path is not None:
        content = read_file(media.path, policy)
    else:
        from .fetch import fetch  # imports the network's modules, which few requests need

        assert media.url is not None
        content = fetch(media.url, item.kind, policy)
    if not content:
        raise MediaError("is empty")
    return content


_SCHEME: Final = "data:"


def _decode(data: str, kind: MediaKind, policy: MediaPolicy) -> bytes:
    """Decode base64, alone or in a data URI. Line breaks are ignored."""
    if data[: len(_SCHEME)].lower() == _SCHEME:
        head, comma, data = data[len(_SCHEME) :].partition(",")
        media_type, *attributes = (part.strip().lower() for part in head.split(";"))
        if not comma or "base64" not in attributes:
            raise MediaError("is a data URI without base64; write data:image/png;base64, and the file in base64")
        check_type(media_type, kind)
    data = "".join(data.split())
    check_size(len(data) * 3 // 4 - 2, policy.max_bytes)
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise MediaError(f"is not base64: {error}") from None
