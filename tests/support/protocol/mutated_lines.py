"""Lines that no careful host writes: mutated vectors, and random bytes. The same seed gives the same lines."""

import random
import re

from lmwire_conformance import vector as vectors

_LONGEST = 2000
"""Longest vector to mutate, in bytes. Speed matters more here than faults that only a long line could reveal."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.\w]+|.', re.DOTALL)
_SCALAR = re.compile(rb'["\w-]')

_BYTES = [
    *(b'"', b"{", b"}", b"[", b"]", b":", b",", b"\\", b"\r", b"\0", b"\t", b" ", b"\xff", b"\xc2", b"\xef\xbb\xbf"),
    *(b'"id":', b'"id":"1",', b'"id":null,', b'"cmd":"ping",', b'"all":true', b'"target":"1"', b'"prompt":[[0]]'),
    *(b"\\ud800", b"\\u0000", b"\\u2028", "\u2028😀".encode(), b"\xed\xa0\x80", b"[" * 200, b'{"a":' * 120),
]
_SCALARS = [
    *(b"null", b"true", b"false", b"NaN", b"-Infinity", b"1e999", b"-0", b"0.0", b"1E+2", b"-1", b"5", b"1e-300"),
    *(b"9007199254740991", b"9007199254740992", b"9" * 400, b'""', b'"1"', b'"\\ud83d\\ude00"', b"[]", b"{}"),
]


class Mutator:
    """An endless source of lines, none of which holds a newline.

    Args:
        seed: seed of the random choices.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        both = vectors.read("commands.valid") + vectors.read("commands.invalid")
        self._lines = [vector.line for vector in both if len(vector.line) <= _LONGEST]
        self._tokens = [_TOKEN.findall(line) for line in self._lines]
        scalars = {token for tokens in self._tokens for token in tokens if _SCALAR.match(token)}
        self._scalars = [*_SCALARS, *sorted(scalars)]

    def line(self) -> bytes:
        """Return the next line."""
        draw = self._random.random()
        if draw < 0.02:
            line = self._random.randbytes(int(draw * 3000))
        elif draw < 0.55:
            line = self._with_other_tokens()
        else:
            line = self._with_other_bytes(self._choose(self._lines))
        return line.replace(b"\n", b" ")

    def _choose(self, items: list[bytes]) -> bytes:
        return items[int(self._random.random() * len(items))]

    def _with_other_tokens(self) -> bytes:
        """Return a vector with other scalars, at times with a run of tokens repeated or removed; mostly still JSON."""
        tokens = list(self._tokens[int(self._random.random() * len(self._tokens))])
        for _ in range(1 + int(self._random.random() * 3)):
            at = int(self._random.random() * len(tokens))
            if _SCALAR.match(tokens[at]):
                tokens[at] = self._choose(self._scalars)
        if self._random.random() < 0.2:
            at, end = self._span(len(tokens))
            tokens[at:end] = tokens[at:end] * (2 if self._random.random() < 0.5 else 0)
        return b"".join(tokens)

    def _with_other_bytes(self, line: bytes) -> bytes:
        at, end = self._span(len(line))
        way = int(self._random.random() * 7)
        if way == 0:
            return line[:at] + bytes([self._random.getrandbits(8)]) + line[at + 1 :]
        if way == 1:
            return line[:at] + self._choose(_BYTES) + line[at:]
        if way == 2:
            return line[:at] + self._choose(_BYTES) + line[end:]
        if way == 3:
            return line[:at] + line[end:]
        if way == 4:
            return line[:end] + line[at:]
        if way == 5:
            return line[:at]
        return line[:at] + self._choose(self._lines)[at:]

    def _span(self, length: int) -> tuple[int, int]:
        at, end = int(self._random.random() * (length + 1)), int(self._random.random() * (length + 1))
        return (at, end) if at <= end else (end, at)
