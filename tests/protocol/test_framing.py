"""The same lines are found, whatever the chunks in which their bytes arrive."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_protocol import Line, LineSplitter, escape_separators
from lmwire_protocol.framing import PREFIX_BYTES

LIMIT = 8
PIECES = [b"\n", b"\r", b"\r\n", b" ", b"a", b"bcd", b"x" * 7, b"y" * 8, b"z" * 9]
STREAMS = st.lists(st.sampled_from(PIECES)).map(b"".join)


def split(*chunks: bytes, limit: int = LIMIT) -> list[Line]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*lines, *splitter.finish()]


def specified(stream: bytes) -> Iterator[Line]:
    """Apply the rules to a whole stream: split at LF, drop one CR, skip blank lines, mark lines that are too long."""
    for part in stream.split(b"\n"):
        line = part.removesuffix(b"\r")
        if len(line) > LIMIT:
            yield Line(b"", overlong=True)
        elif line.strip():
            yield Line(line)


@given(STREAMS, st.lists(st.integers(min_value=0, max_value=60)))
def test_any_chunking_gives_the_lines_that_the_whole_stream_has(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    lines = [Line(b"", overlong=True) if line.overlong else line for line in split(*chunks)]
    assert lines == list(specified(stream))


def test_a_carriage_return_before_the_newline_is_dropped_once() -> None:
    assert split(b"a\r\nb\r\r\n") == [Line(b"a"), Line(b"b\r")]


def test_blank_lines_are_skipped() -> None:
    assert split(b"\n\r\n \t\n\na\n\n") == [Line(b"a")]


def test_the_last_line_may_lack_its_newline() -> None:
    assert split(b"a\nb") == [Line(b"a"), Line(b"b")]


def test_a_line_at_the_limit_is_whole_and_its_carriage_return_does_not_count() -> None:
    assert split(b"x" * 8 + b"\n", b"y" * 8 + b"\r\n") == [Line(b"x" * 8), Line(b"y" * 8)]


def test_a_line_beyond_the_limit_is_marked_and_the_next_one_is_read() -> None:
    assert split(b"x" * 9 + b"\ngood\n") == [Line(b"x" * 9, overlong=True), Line(b"good")]


def test_an_over_long_line_keeps_its_beginning_and_no_more_memory() -> None:
    splitter = LineSplitter(4096)
    for _ in range(100):
        assert not list(splitter.feed(b"x" * 1000))
        assert sum(map(len, splitter.parts)) <= 4096 + 1000
    (line,) = splitter.feed(b"\n")
    assert line == Line(b"x" * PREFIX_BYTES, overlong=True)


def test_an_over_long_line_without_newline_is_reported_at_the_end() -> None:
    assert split(b"x" * 9) == [Line(b"x" * 9, overlong=True)]


def test_a_splitter_knows_whether_a_line_has_started() -> None:
    splitter = LineSplitter(LIMIT)
    assert not splitter.partial
    assert not list(splitter.feed(b"a"))
    assert splitter.partial
    assert list(splitter.feed(b"b\n")) == [Line(b"ab")]
    assert not splitter.partial


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
def test_separators_are_escaped(separator: str) -> None:
    assert escape_separators(f'"a{separator}b"'.encode()) == f'"a\\u{ord(separator):04x}b"'.encode()


@given(st.text())
def test_escaping_leaves_no_line_boundary_of_any_reader(text: str) -> None:
    printable = "".join(character for character in text if ord(character) >= 0x20)
    assert len(escape_separators(printable.encode()).decode().splitlines()) <= 1
