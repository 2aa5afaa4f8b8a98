"""Text is tokenized when it is certain that it may fit: no bound refuses what would."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from lmwire_protocol import RequestError
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.prompts.token_lower_bound import TokenLowerBound
from lmwire_worker.prompts.tokenization import LARGE_CHARACTERS, Encoder
from support.runners.constrained import write_tokenizer
from support.runners.prompting import tokenizer

PIECES = st.sampled_from(["hello", " world", "\n", "  ", "é", "e\u0301", "界", "<|im_end|>", "1", "aaaa", "\U0001f600"])


@given(st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=80))
def test_a_text_has_at_least_the_tokens_that_the_bound_says(text: str) -> None:
    found = tokenizer(None)
    assert TokenLowerBound(found).tokens(text) <= len(found.encode(text, add_special_tokens=False))


def test_the_lower_bound_of_a_long_text_is_useful() -> None:
    assert TokenLowerBound(tokenizer(None)).tokens("hello world " * 1000) > 500


def _changed(folder: Path, **parts: Any) -> Tokenizer:
    found = write_tokenizer(folder, [])
    for name, part in parts.items():
        setattr(found.backend_tokenizer, name, part)
    return found


def test_nothing_is_certain_of_a_tokenizer_that_may_drop_or_rewrite_text(tmp_path: Path) -> None:
    dropping = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel(use_regex=False)])
    removing = pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "removed"), pre_tokenizers.ByteLevel()])
    for name, parts in {
        "drops spaces": {"pre_tokenizer": dropping},
        "removes what it splits at": {"pre_tokenizer": removing},
        "rewrites": {"normalizer": normalizers.NFKC()},
    }.items():
        assert TokenLowerBound(_changed(tmp_path / name, **parts)).tokens("a b " * 1000) == 0
    stripping = write_tokenizer(tmp_path / "strips", [])
    assert stripping.backend_tokenizer
    stripping.backend_tokenizer.add_tokens([AddedToken("<x>", lstrip=True)])
    assert TokenLowerBound(stripping).tokens("a b " * 1000) == 0


def test_a_text_that_composing_makes_shorter_is_not_judged(tmp_path: Path) -> None:
    composing = TokenLowerBound(_changed(tmp_path, normalizer=normalizers.NFC()))
    assert composing.tokens("e\u0301" * 1000) == 0
    assert composing.tokens("e" * 1000) > 0


def test_a_large_text_has_the_tokens_that_the_tokenizer_itself_gives() -> None:
    found = tokenizer(None)
    text = "Hello, wörld <|im_end|>\n" * (LARGE_CHARACTERS // 10)
    assert Encoder(found).encode(text, "prompt", add_special_tokens=True, allow_overflow=False) == found.encode(text)


def test_what_cannot_fit_is_refused_unless_it_is_to_be_cut() -> None:
    found = Encoder(tokenizer(None), context_len=100)
    text = "hello " * LARGE_CHARACTERS
    with pytest.raises(RequestError, match="at least") as refused:
        found.encode(text, "prompt", add_special_tokens=False, allow_overflow=False)
    assert refused.value.code == "context_overflow"
    assert len(found.encode(text, "prompt", add_special_tokens=False, allow_overflow=True)) > 100


def _sentence_pieces(prepend: bool) -> Tokenizer:
    """A tokenizer as converted from SentencePiece: spaces are marked, and unknown characters fall back to bytes."""
    vocabulary = [f"<0x{byte:02X}>" for byte in range(256)] + ["\u2581", "a", "b", "\u2581a", "ab", "\u2581ab"]
    backend = Backend(
        models.BPE(
            {token: index for index, token in enumerate(vocabulary)},
            [("\u2581", "a"), ("a", "b"), ("\u2581a", "b")],
            byte_fallback=True,
        )
    )
    steps = [normalizers.Prepend("\u2581")] if prepend else []
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "\u2581")])
    return Tokenizer(backend)


@pytest.mark.parametrize("prepend", [True, False])
@given(st.lists(st.sampled_from(["a", "b", "ab", " ", "  ", "é", "\U0001f600", "\u2581"]), max_size=40).map("".join))
def test_a_text_of_sentence_pieces_has_at_least_the_tokens_that_the_bound_says(prepend: bool, text: str) -> None:
    found = _sentence_pieces(prepend)
    assert TokenLowerBound(found).tokens(text) <= len(found.encode(text, add_special_tokens=False))
    assert TokenLowerBound(found).tokens("ab " * 1000) > 500
