"""Repeatable damage to files: flipped bits, cut ends, wrong numbers, and pieces removed, repeated or copied."""

import random
from collections.abc import Callable

EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
"""Numbers that often break the handling of sizes."""
HEADER_BYTES = 128
"""Bytes at the start of a file that count as its header, which receives most of the damage."""


def damage(content: bytes, draw: random.Random) -> bytes:
    """Return a damaged file.

    Args:
        content: The whole file.
        draw: Source of the random choices.
    """
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        draw.choice(_WAYS)(data, draw)
    return bytes(data)


def _place(data: bytearray, draw: random.Random) -> int:
    end = min(len(data), HEADER_BYTES) if draw.random() < 0.6 else len(data)
    return draw.randrange(end) if end else 0


def _flip(data: bytearray, draw: random.Random) -> None:
    if data:
        data[_place(data, draw)] ^= 1 << draw.randrange(8)


def _lie(data: bytearray, draw: random.Random) -> None:
    width, place = draw.choice((1, 2, 3, 4, 8)), _place(data, draw)
    number = draw.choice(EDGES) if draw.random() < 0.7 else draw.getrandbits(64)
    data[place : place + width] = (number % 256**width).to_bytes(width, draw.choice(("little", "big")))


def _cut(data: bytearray, draw: random.Random) -> None:
    del data[_place(data, draw) :]


def _drop(data: bytearray, draw: random.Random) -> None:
    place = _place(data, draw)
    del data[place : place + draw.choice((1, 4, 64, 1024))]


def _repeat(data: bytearray, draw: random.Random) -> None:
    place = _place(data, draw)
    data[place:place] = data[place : place + draw.choice((1, 4, 64, 1024))]


def _move(data: bytearray, draw: random.Random) -> None:
    place, other, size = _place(data, draw), _place(data, draw), draw.choice((4, 16, 256))
    data[other : other + size] = data[place : place + size]


_WAYS: tuple[Callable[[bytearray, random.Random], None], ...] = (_flip, _flip, _lie, _lie, _cut, _drop, _repeat, _move)
