"""Names and messages from outside, as a terminal and a log show them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_protocol.printable import one_line, printable


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("mlx-community/Qwen3 (4 bit) Größe 模型 👍", "mlx-community/Qwen3 (4 bit) Größe 模型 👍"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("a\u202eb\u2066c\u200fd", r"a\u202eb\u2066c\u200fd"),
        ("a\u2028b\ud800", r"a\u2028b\ud800"),
        ("hidden\U000e0041", r"hidden\U000e0041"),
        ("two words\u00a0", "two words\u00a0"),
    ],
)
def test_what_a_terminal_obeys_is_written_as_an_escape(given: str, shown: str) -> None:
    assert printable(given) == one_line(given) == shown


def test_a_message_may_have_lines_and_a_name_may_not() -> None:
    assert printable("one\n\ttwo\r") == "one\n\ttwo\\r"
    assert one_line("one\n\ttwo\r") == r"one\n\ttwo\r"


@given(st.text())
def test_no_text_leaves_a_character_that_acts(text: str) -> None:
    kinds = {unicodedata.category(character) for character in one_line(text)}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
