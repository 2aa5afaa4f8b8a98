"""The bytes of an image or a sound, from where a request says that they are."""

import base64
from typing import Final

from .files import read_file
from .media_error import Problem, check_size, check_type
from .media_refs import Item, Kind
from .policy import Policy


def read_source(item: Item, policy: Policy) -> bytes:
    """At least one byte, at most `policy.max_bytes`. Raises Problem."""
    media = item.media
    if media.data is not None:
        content = _decode(media.data, item.kind, policy)
    elif media.path is not None:
        content = read_file(media.path, policy)
    else:
        from .fetch import fetch  # with the network's modules, which few need

        assert media.url is not None
        content = fetch(media.url, item.kind, policy)
    if not content:
        raise Problem("is empty")
    return content


_SCHEME: Final = "data:"


def _decode(data: str, kind: Kind, policy: Policy) -> bytes:
    """Base64, alone or in a data URI; line breaks in it are as good as none."""
    if data[: len(_SCHEME)].lower() == _SCHEME:
        head, comma, data = data[len(_SCHEME) :].partition(",")
        media_type, *attributes = (part.strip().lower() for part in head.split(";"))
        if not comma or "base64" not in attributes:
            raise Problem("is a data URI without base64; write data:image/png;base64, and the file in base64")
        check_type(media_type, kind)
    data = "".join(data.split())
    check_size(len(data) * 3 // 4 - 2, policy.max_bytes)
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise Problem(f"is not base64: {error}") from None
