"""Ends of an answer that depend on its lines."""

import pytest

from lmwire_http.llama_cpp.infill import LineLimits


def read(limits: LineLimits, pieces: list[str]) -> str:
    return "".join([*(limits.push(piece, 0.0) for piece in pieces), limits.flush()])


@pytest.mark.parametrize(
    ("text", "kept", "ends"),
    [
        ("a\n    b\n  c\n", "a\n    b", True),
        ("a\n    b\n\n    c", "a\n    b\n\n    c", False),
        ("a\n\tb", "a", True),
        ("a\n    ", "a\n    ", False),
        ("  a\nb", "  a", True),
        ("a", "a", False),
    ],
)
def test_an_answer_ends_before_a_line_with_less_indentation(text: str, kept: str, ends: bool) -> None:
    for pieces in ([text], [*text]):
        limits = LineLimits(4, 0.0)
        assert (read(limits, pieces), limits.ended) == (kept, ends)


def test_any_line_belongs_to_an_answer_without_that_limit() -> None:
    limits = LineLimits(0, 0.0)
    assert (read(limits, ["  a\nb\n"]), limits.ended) == ("  a\nb\n", False)


def test_time_ends_an_answer_only_after_a_line_break() -> None:
    limits = LineLimits(0, 1.0)
    assert limits.push("a", 10.0) == "a"
    assert (limits.push("b", 99.0), limits.ended) == ("b", False)
    assert (limits.push("\nc", 99.0), limits.ended) == ("\nc", True)
    assert limits.push("d", 99.0) == ""


def test_time_counts_from_the_first_text() -> None:
    limits = LineLimits(0, 1.0)
    limits.push("a\n", 10.0)
    assert (limits.push("b", 11.0), limits.ended) == ("b", False)
