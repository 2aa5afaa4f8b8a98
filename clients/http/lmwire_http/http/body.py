"""The bytes of a request body before they are decoded, within limits that hold before each step.

They are collected, decompressed and weighed. The weight of a JSON text is the most time and memory that its decoding
takes. A decoder runs to its end: no other request is served meanwhile, and no thread helps. So its work is bounded
before it starts. A text, a list or an object takes more time than a number. Some decimal numbers take a hundred times
as long, since the nearest binary number is hard to find.
"""

import asyncio
import sys
import zlib
from array import array
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any, Final, TypeVar

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from ..errors import ApiError
from ..limits import JSON_DEPTH, JSON_WEIGHT
from ..pool.fair_queue import FairQueue

_WINDOW_BITS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""For each encoding of a body, the argument that makes zlib expect its header."""
_ZSTD: Final = "zstd"
_ZSTD_WINDOW_BITS: Final = 23
"""8 MiB, the most memory that RFC 9659 lets a body's encoder ask of its decoder."""
_ENCODINGS: Final = "gzip, deflate, zstd"
_UNENCODED: Final = ("", "identity")
_PIECE_BYTES: Final = 64 * 1024
"""Bytes of one step. Other threads run between steps."""
_CONTAINER: Final = 8
"""Weight of a list, an object or a text. A number has the weight 1."""
_DECIMAL: Final = 32
"""Weight of a decimal point."""
_SLOW_NUMBER: Final = 512
"""Weight of an exponent, and of every 32 digits in a row."""
_MANY_DIGITS: Final = b"0" * 32
_SHAPES: Final = bytes.maketrans(b"123456789+-E", b"00000000000e")
"""Makes all digits and signs equal, and both forms of an exponent."""
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Makes each bracket a signed byte: the change of the depth."""
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))
T = TypeVar("T")

BODIES_AT_ONCE: Final = 1
"""Large bodies that are worked on at once: more threads would take turns with the event loop, and finish no sooner. The
others wait as they were sent, so each takes only what its client sent."""


def check_content_encoding(encoding: str) -> None:
    """Check that a body with this encoding can be read.

    Args:
        encoding: The value of the request's header content-encoding.

    Raises:
        ApiError: The encoding is not supported.
    """
    if _normalized(encoding) not in _UNENCODED and not is_compressed(encoding):
        problem = "the body must be uncompressed, or have the content-encoding gzip, deflate or zstd"
        raise ApiError(415, problem, code="unsupported_media_type", headers={"accept-encoding": _ENCODINGS})


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
    return (name := _normalized(encoding)) in _WINDOW_BITS or name == _ZSTD


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
    if not is_compressed(encoding) or not body:
        return body
    decompressor = _decompressor(name)
    try:
        whole = decompressor.decompress(body, limit + 1)
    except (zlib.error, zstd.ZstdError) as error:
        raise _wrong_encoding(name, str(error)) from error
    if len(whole) > limit:
        raise body_too_long(limit)
    if not decompressor.eof:
        raise _wrong_encoding(name, "it ends early")
    if decompressor.unused_data:
        raise _wrong_encoding(name, "something follows its end")
    return whole


def _decompressor(name: str) -> Any:
    """Return an object with the methods of zlib's, which zstd's shares."""
    if name == _ZSTD:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_BITS})
    return zlib.decompressobj(_WINDOW_BITS[name])


def _wrong_encoding(name: str, problem: str) -> ApiError:
    message = f"the body is not {name}, which its content-encoding announces: {problem}"
    return ApiError(400, message, code="invalid_encoding")


def _normalized(encoding: str) -> str:
    return encoding.strip().lower()


def weigh(body: bytes) -> int:
    """Return the weight of a JSON text. Text that is not JSON has a weight, too.

    Args:
        body: The JSON text.

    Raises:
        ApiError: It weighs more than a request may, or is nested too deeply.
    """
    weight = depth = 0
    for outside, texts in _without_texts(body):
        shapes = outside.translate(_SHAPES)
        containers = texts + shapes.count(b"[") + shapes.count(b"{")
        slow_numbers = shapes.count(b"0e") + shapes.count(_MANY_DIGITS)
        weight += shapes.count(b",") + _CONTAINER * containers
        weight += _DECIMAL * shapes.count(b".") + _SLOW_NUMBER * slow_numbers
        if weight > JSON_WEIGHT:
            raise _too_heavy()
        steps = array("b", outside.translate(_STEPS, _NOT_BRACKETS))
        if depth + len(steps) > JSON_DEPTH and max(accumulate(steps, initial=depth)) > JSON_DEPTH:
            raise ApiError(400, f"the body is nested too deeply: {JSON_DEPTH} levels are allowed", code="invalid_json")
        depth += sum(steps)
    return weight


def _without_texts(body: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the body in pieces: what is outside of its texts, and the number of texts that begin in the piece."""
    start, inside = 0, False
    while start < len(body):
        piece = body[start : start + _PIECE_BYTES]
        backslashes = len(piece) - len(piece.rstrip(b"\\"))
        if backslashes % 2 and start + len(piece) < len(body):
            piece = piece[:-1]  # the escaped character is in the next piece
        start += len(piece)
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        yield b"".join(parts[inside::2]), (len(parts) - inside) // 2
        inside ^= len(parts) % 2 == 0


def _too_heavy() -> ApiError:
    problem = "it has too many values; send fewer messages, parts, tools, texts or numbers in one request"
    return ApiError(400, f"the body takes too long to decode: {problem}", code="too_many_values")


class WorkThread:
    """The thread, which serves clients in turn."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(BODIES_AT_ONCE, thread_name_prefix="lmwire-body")
        self._queue = FairQueue(lambda: BODIES_AT_ONCE - 1)  # the queue admits one more than it has rows

    async def run(self, client: Hashable, work: Callable[[], T]) -> T:
        """Return the result of some work, once it is the client's turn.

        A request that is cancelled meanwhile leaves the queue. Work that runs goes on to its end, and keeps the thread.

        Args:
            client: The client that sent the request.
            work: The work. It does not use the event loop.
        """
        async with self._queue.enter(client, rows=1):
            running = asyncio.get_running_loop().run_in_executor(self._executor, work)
            try:
                return await asyncio.shield(running)
            finally:
                if not running.done():
                    await asyncio.wait((running,))
