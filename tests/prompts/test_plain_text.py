"""Text in which the names of special tokens are ordinary text: it is cut within each name."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.prompts import infill
from lmwire_worker.prompts.infill import PlainTextEncoder


def pieces_of(text: str, names: list[str]) -> list[str]:
    """Return the pieces in which a text is tokenized."""
    pieces: list[str] = []

    def encode(text: str, field: str, **options: object) -> list[str]:
        pieces.append(text)
        return [*text]

    encoder: Any = SimpleNamespace(tokenizer=SimpleNamespace(added_tokens_decoder={}), encode=encode)
    plain = PlainTextEncoder(encoder, names)
    plain.encode("c", "prompt")  # the tokenizer is tried first
    pieces.clear()
    plain.encode(text, "prompt", leads=True)
    return pieces


@given(text=st.text("<|ab>", max_size=60), names=st.lists(st.text("<|ab>", min_size=1, max_size=4), max_size=12))
def test_a_text_is_cut_after_the_first_character_of_each_name(text: str, names: list[str]) -> None:
    starts = [at for at in range(len(text)) if any(len(name) > 1 and text.startswith(name, at) for name in names)]
    ends = [*(at + 1 for at in starts), len(text)]
    expected = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert [piece for piece in pieces_of(text, names) if piece] == [piece for piece in expected if piece]


def test_names_that_differ_at_each_character_are_found() -> None:
    names = [f"{'a' * count}b" for count in range(1, 1200)]  # more than the depth of Python's recursion
    assert pieces_of("caab", names) == ["ca", "a", "b"]


def test_no_name_is_compared_with_each_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """`re` holds all threads while it compares, so a pattern of thousands of alternatives would stop the worker."""
    patterns: list[str] = []
    monkeypatch.setattr(infill, "re", SimpleNamespace(escape=re.escape, compile=patterns.append))
    encoder: Any = SimpleNamespace(tokenizer=SimpleNamespace(added_tokens_decoder={}))
    PlainTextEncoder(encoder, [f"<|reserved_{number}|>" for number in range(1000)])
    assert patterns[0].count("reserved") == 1
