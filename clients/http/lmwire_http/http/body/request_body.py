"""The bytes of a request body: collected, decompressed, and limited in length before and after that."""

import zlib
from typing import Final

from ..errors import ApiError

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
    """Collector of a body's parts. It decompresses each when it arrives, and no further than the limit.

    Args:
        encoding: The value of the request's header content-encoding.
        limit: Maximum length, in bytes, of the body as it is sent and of the body as it is decoded.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self._encoding, self._limit = _normalized(encoding), limit
        bits = _WINDOW_BITS.get(self._encoding)
        self._decompressor = None if bits is None else zlib.decompressobj(bits)
        self._received_bytes = 0
        self._body = bytearray()

    def add(self, part: bytes) -> None:
        """Add the next part.

        Raises:
            ApiError: The body is too long, or it does not have its encoding.
        """
        self._received_bytes += len(part)
        self._body += self._decode(part)
        if max(len(self._body), self._received_bytes) > self._limit:
            raise body_too_long(self._limit)

    def whole(self) -> bytes:
        """Return the body after its last part.

        Raises:
            ApiError: The compressed body is incomplete.
        """
        if self._decompressor and self._received_bytes and not self._decompressor.eof:
            raise self._wrong_encoding("it ends early")
        return bytes(self._body)

    def _decode(self, part: bytes) -> bytes:
        """Return at most one byte more than the limit allows: a few compressed bytes can stand for gigabytes."""
        if self._decompressor is None:
            return part
        try:
            decoded = self._decompressor.decompress(part, self._limit - len(self._body) + 1)
        except zlib.error as error:
            raise self._wrong_encoding(str(error)) from error
        if self._decompressor.unused_data:
            raise self._wrong_encoding("something follows its end")
        return decoded

    def _wrong_encoding(self, problem: str) -> ApiError:
        message = f"the body is not {self._encoding}, which its content-encoding announces: {problem}"
        return ApiError(400, message, code="invalid_encoding")


def _normalized(encoding: str) -> str:
    return encoding.strip().lower()
