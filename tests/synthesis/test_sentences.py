"""Texts are split where speech pauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.synthesis.sentences import split_text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two.", ["One. Two."]),
        ("One is long. Two is long.", ["One is long.", "Two is long."]),
        ("One\n\nTwo", ["One Two"]),
        ("One is long\nTwo is long", ["One is long", "Two is long"]),
        ("", []),
        (" \n ", []),
        ("a sentence of many words", ["a sentence of", "many words"]),
        ("a-word-without-any-end", ["a-word-without-an", "y-end"]),
        ("3.14 is pi", ["3.14 is pi"]),
        (
            "\u4f60\u597d\u3002\u4f60\u597d\u5417\uff1f\u518d\u89c1\u3002\u518d\u89c1\u518d\u89c1\u518d\u89c1\u518d\u89c1",
            [
                "\u4f60\u597d\u3002 \u4f60\u597d\u5417\uff1f \u518d\u89c1\u3002",
                "\u518d\u89c1\u518d\u89c1\u518d\u89c1\u518d\u89c1",
            ],
        ),
    ],
)
def test_a_text_is_split_at_sentences_and_then_at_words(text: str, parts: list[str]) -> None:
    assert list(split_text(text, 17)) == parts


@given(st.text(), st.integers(1, 40))
def test_no_part_is_too_long_and_nothing_is_lost(text: str, limit: int) -> None:
    parts = list(split_text(text, limit))
    assert all(0 < len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
