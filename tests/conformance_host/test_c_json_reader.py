"""The C host reads JSON as Python does, but for what the protocol forbids."""

import json
import random
import subprocess
from typing import Any

import pytest

from lmwire_conformance import vector as vectors
from support.protocol.client_programs import c_program

pytestmark = pytest.mark.slow

LINES = 6000
PIECES = [
    *map(bytes, zip(b'"\\{}[]:,0123456789eE+-.u \t\r')),
    b"\xff",
    b"\xed\xa0\x80",
    "é漢😀".encode(),
    b"\\ud83d",
    b"\\ude00",
]
DEEPEST = 100


def mutated(line: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Return a line with some pieces replaced, removed or put in."""
    changed = bytearray(line)
    for _ in range(rng.randint(0, 3)):
        start = rng.randint(0, len(changed))
        other = rng.choice(others)
        part = other[rng.randint(0, len(other)) :][: rng.randint(0, 40)]
        changed[start : start + rng.randint(0, 3)] = rng.choice([rng.choice(PIECES), part, b""])
    return bytes(changed).replace(b"\n", b" ").replace(b"\0", b"0")


def depth(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict | list) + max(map(depth, children), default=0)


def pairs(members: list[tuple[str, Any]]) -> list[Any]:
    """Return an object's members as a list, because one name can come twice."""
    return ["object", *members]


def refuse(constant: str) -> None:
    raise ValueError(constant)


def read(line: bytes) -> Any:
    """Return what Python reads, or None for a line that the protocol does not allow."""
    try:
        text = line.decode()
        value = json.loads(text, parse_constant=refuse, parse_int=number, parse_float=number, object_pairs_hook=pairs)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # half a surrogate pair, or a number too large
    except ValueError:
        return None
    return value if depth(json.loads(text)) <= DEEPEST else None


def number(digits: str) -> float:
    return float(digits) + 0.0 or 0.0  # without the sign of zero


def test_the_reader_agrees_with_python() -> None:
    rng = random.Random(11)
    names = ("events.valid", "events.invalid", "commands.valid", "commands.invalid")
    seeds = [each.line for name in names for each in vectors.read(name) if len(each.line) < 4096]
    lines = [mutated(rng.choice(seeds), seeds, rng) for _ in range(LINES)]
    command = [*c_program("test"), "--echo"]
    printed = subprocess.run(command, input=b"\n".join(lines) + b"\n", capture_output=True, check=True).stdout
    outputs = printed.split(b"\n")[:-1]
    assert len(outputs) == LINES
    expected = [read(line) for line in lines]
    assert LINES / 10 < sum(value is not None for value in expected) < LINES * 9 / 10
    for line, output, value in zip(lines, outputs, expected, strict=True):
        seen = None if output == b"refused" else read(output)
        assert seen == value, (line, output)
