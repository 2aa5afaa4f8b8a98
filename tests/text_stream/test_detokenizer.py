"""Detokenizers: mlx-lm's text, for answers; the text as it is, for continuations; never half a character."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, SPMStreamingDetokenizer
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models
from transformers import PreTrainedTokenizerFast

from lmwire_worker.models.tokenizer import DecoderKind, Tokenizer
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.text_stream.detokenizer import Detokenizer, make_detokenizers
from random_model import write_model

Make = Callable[[Any], Detokenizer]
tokens = st.lists(st.integers(0, 270), max_size=40)


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = write_model(tmp_path_factory.mktemp("byte_level"), vocab_size=272)
    return load_tokenizer(folder, {}, trust_remote_code=False)


@pytest.fixture(scope="module")
def sentence_piece() -> Tokenizer:
    """Bytes as `<0x41>`, words with a leading `▁`, and a decoder that strips the first space."""
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)}
    vocabulary |= {word: 256 + n for n, word in enumerate(["▁", "▁the", "▁of", "a", "b", "é", "▁▁", "🎉"])}
    vocabulary |= {f"w{n}": n for n in range(len(vocabulary), 271)}
    tokenizer = Backend(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True, unk_token="<0x00>"))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    return Tokenizer(tokenizer)


def stream(detokenizer: Detokenizer, ids: list[int]) -> Iterator[str]:
    for token in ids:
        yield detokenizer.add(token)
    yield detokenizer.flush()


def by_mlx_lm(kind: Callable[[Any], Any], tokenizer: Tokenizer, ids: list[int]) -> str:
    detokenizer = kind(PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer))
    for token in ids:
        detokenizer.add_token(token)
    detokenizer.finalize()
    return detokenizer.text


@given(tokens.map(lambda ids: [token for token in ids if token != 188]))  # mlx-lm spells the byte 0 as U+0100
def test_an_answer_of_byte_level_tokens_has_mlx_lms_text(byte_level: Tokenizer, ids: list[int]) -> None:
    assert byte_level.kind == "byte_level"
    found = "".join(stream(make_detokenizers(byte_level)(None), ids))
    assert found == by_mlx_lm(BPEStreamingDetokenizer, byte_level, ids)


@given(tokens)
def test_an_answer_of_sentence_pieces_has_mlx_lms_text(sentence_piece: Tokenizer, ids: list[int]) -> None:
    assert sentence_piece.kind == "sentencepiece_stripped"
    found = "".join(stream(make_detokenizers(sentence_piece)(None), ids))
    assert found == by_mlx_lm(SPMStreamingDetokenizer, sentence_piece, ids)


@given(st.text())
def test_a_continuation_is_its_text_as_it_is(byte_level: Tokenizer, text: str) -> None:
    ids = byte_level.encode(text, add_special_tokens=False)
    assert "".join(stream(make_detokenizers(byte_level)([1, 2]), ids)) == text


@given(st.text(min_size=1))
def test_no_delta_ends_within_a_character(byte_level: Tokenizer, text: str) -> None:
    ids = byte_level.encode(text, add_special_tokens=False)
    texts = list(stream(make_detokenizers(byte_level)([1]), ids))
    assert "\ufffd" not in "".join(texts).replace("\ufffd", "", text.count("\ufffd"))
    ends = [len("".join(texts[: n + 1]).encode()) for n in range(len(texts))]
    assert all(earlier <= later for earlier, later in pairwise(ends))


@pytest.mark.parametrize("kind", [None, "other"])
@given(st.text(min_size=1, max_size=40), st.integers(0, 200))
def test_a_text_that_is_cut_ends_with_its_last_whole_character(
    byte_level: Tokenizer, kind: DecoderKind | None, text: str, count: int
) -> None:
    tokenizer = Tokenizer(byte_level.backend_tokenizer, kind=kind)
    ids = tokenizer.encode(text, add_special_tokens=False)[:count]
    detokenizer = make_detokenizers(tokenizer)([1])
    found = "".join(map(detokenizer.add, ids)) + detokenizer.flush(is_cut=True)
    assert text.startswith(found)
    assert len(tokenizer.encode(found, add_special_tokens=False)) <= count


def test_a_token_beyond_the_tokenizers_vocabulary_has_no_text(byte_level: Tokenizer) -> None:
    assert make_detokenizers(byte_level)(None).add(5000) == ""


@given(st.lists(st.integers(260, 268), max_size=120))
def test_any_other_tokenizer_gives_what_it_decodes(byte_level: Tokenizer, ids: list[int]) -> None:
    naive = Tokenizer(byte_level.backend_tokenizer, kind="other")
    assert "".join(stream(make_detokenizers(naive)(None), ids)) == naive.decode(ids)
    continued = "".join(stream(make_detokenizers(naive)([261] * 20), ids))
    assert continued == naive.decode([261] * 20 + ids)[len(naive.decode([261] * 20)) :]


@given(st.text(max_size=60))
def test_any_other_tokenizer_cuts_no_character_either(byte_level: Tokenizer, text: str) -> None:
    naive = Tokenizer(byte_level.backend_tokenizer, kind="other")
    ids = naive.encode(text, add_special_tokens=False)
    assert "".join(stream(make_detokenizers(naive)(None), ids)) == text


def test_a_detokenizers_memory_does_not_grow_with_the_text(byte_level: Tokenizer) -> None:
    decoded: list[int] = []

    class Counting(Tokenizer):
        def decode(self, tokens: Sequence[int], **options: Any) -> str:
            decoded.append(len(tokens))
            return super().decode(tokens, **options)

    detokenizer = make_detokenizers(Counting(byte_level.backend_tokenizer, kind="other"))(None)
    for _ in range(1000):
        detokenizer.add(262)
    assert max(decoded) < 50
