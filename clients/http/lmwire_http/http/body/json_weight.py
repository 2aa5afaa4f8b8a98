"""The weight of a JSON text: how much time and memory its decoding takes at most, found out without decoding it.

A decoder runs to its end: no other request is served meanwhile, and no thread helps. So its work is bounded before it
begins. A text, a list or an object takes more time than a number. Some decimal numbers take a hundred times as long,
since the nearest binary number is hard to find.
"""

from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from ...errors import ApiError
from ...limits import JSON_DEPTH, JSON_WEIGHT

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
