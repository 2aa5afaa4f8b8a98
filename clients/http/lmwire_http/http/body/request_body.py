"""The bytes of a request body: collected, decompressed, and limited in length before and after that."""

import zlib
from typing import Final

from ...errors import ApiError

_WINDOW_BITS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""For each encoding of a body, the argument that makes zlib expect its header."""
_UNENCODED: Final = ("", "identity")


def check_content_encoding(encoding: str) -> None:
    """Check that a body with this encoding can be read.

    Args:
        encoding: The value of the request's header content-encoding.

    Raises:
        ApiError: The encoding is not supported.
    """
    if (name := _normalized(encoding)) not in _UNENCODED and name not in _WINDOW_BITS:
        problem = "the body must be uncompressed, or have the content-encoding gzip or deflate"
        raise ApiError(415, problem, code="unsupported_media_type", headers={"accept-encoding": "gzip, deflate"})


def body_too_long(limit: int) -> ApiError:
    """Return the error for a body that is longer than the limit, in bytes."""
    return ApiError(413, f"the body is longer than {limit:,} bytes, the limit", code="body_too_long")


class BodyCollector:
    """Collector of a body's parts, as they are sent.

    Args:
        limit: Maximum length in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()

    def add(self, part: bytes) -> None:
        """Add the next part.

        Raises:
            ApiError: The body is too long.
        """
        if len(self._body) + len(part) > self._limit:
            raise body_too_long(self._limit)
        self._body += part

    def whole(self) -> bytes:
        """Return the body after its last part."""
        return bytes(self._body)


def is_compressed(encoding: str) -> bool:
    """Return whether a body with this encoding must be decompressed."""
    return _normalized(encoding) in _WINDOW_BITS


def decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    """Return a body without its encoding. A few compressed bytes can stand for gigabytes: it ends beyond the limit.

    Args:
        body: The body as it was sent.
        encoding: The value of the request's header content-encoding.
        limit: Maximum length of the result, in bytes.

    Raises:
        ApiError: The body is too long, or it does not have its encoding.
    """
    name = _normalized(encoding)
    if name not in _WINDOW_BITS or not body:
        return body
    decompressor = zlib.decompressobj(_WINDOW_BITS[name])
    try:
        whole = decompressor.decompress(body, limit + 1)
    except zlib.error as error:
        raise _wrong_encoding(name, str(error)) from error
    if len(whole) > limit:
        raise body_too_long(limit)
    if not decompressor.eof:
        raise _wrong_encoding(name, "it ends early")
    if decompressor.unused_data:
        raise _wrong_encoding(name, "something follows its end")
    return whole


def _wrong_encoding(name: str, problem: str) -> ApiError:
    message = f"the body is not {name}, which its content-encoding announces: {problem}"
    return ApiError(400, message, code="invalid_encoding")


def _normalized(encoding: str) -> str:
    return encoding.strip().lower()
