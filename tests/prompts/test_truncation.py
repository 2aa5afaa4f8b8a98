"""Prompts that the context does not hold: refused, or cut to the token."""

import string
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from lmwire_protocol import Generate, RequestError
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.prompts import tokenization as encoding
from lmwire_worker.prompts import truncation
from lmwire_worker.prompts.tokenization import Encoder
from lmwire_worker.prompts.truncation import truncate_prompt
from support.runners.prompting import tokenizer

BOS = 1
LONG = [BOS, *range(100, 120)]


def cut(tokens: list[int], context_len: int, **fields: Any) -> list[int]:
    return truncate_prompt(Generate(prompt=tokens, **fields), tokens, context_len, BOS)


def refusal(tokens: list[int], context_len: int, **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        cut(tokens, context_len, **fields)
    return caught.value


def test_a_prompt_that_is_too_long_is_refused_with_the_numbers() -> None:
    error = refusal(LONG, 20)
    assert error.code == "context_overflow"
    assert "21 tokens" in error.message and "holds 20" in error.message


@pytest.mark.parametrize("truncate", ["none", "left", "middle"])
def test_a_prompt_that_fits_stays_as_it_is(truncate: Any) -> None:
    assert cut(LONG, 25, truncate=truncate, max_tokens=4) == LONG


def test_a_prompt_of_the_contexts_length_is_no_overflow_without_truncate() -> None:
    assert cut(LONG, 21) == LONG


def test_left_keeps_the_end_and_the_beginning_of_text_token() -> None:
    assert cut(LONG, 10, truncate="left", max_tokens=4) == [BOS, *LONG[-5:]]


def test_left_keeps_nothing_else_of_the_beginning() -> None:
    assert cut(LONG[1:], 10, truncate="left", max_tokens=4) == LONG[-6:]


def test_middle_keeps_the_first_and_the_last_half() -> None:
    assert cut(LONG, 10, truncate="middle", max_tokens=3) == [*LONG[:3], *LONG[-4:]]


def test_without_max_tokens_the_prompt_leaves_one_token_for_the_answer() -> None:
    assert cut(LONG, 10, truncate="left") == [BOS, *LONG[-8:]]


def test_without_an_answer_the_prompt_fills_the_context() -> None:
    assert len(cut(LONG, 10, truncate="middle", max_tokens=0)) == 10


@pytest.mark.parametrize("truncate", ["left", "middle"])
@pytest.mark.parametrize("max_tokens", [9, 10, 11, 2**53 - 1])
def test_max_tokens_that_leave_no_tokens_for_the_prompt_are_refused(truncate: Any, max_tokens: int) -> None:
    error = refusal(LONG, 10, truncate=truncate, max_tokens=max_tokens)
    assert error.code == "context_overflow"
    assert f"{max_tokens}" in error.message


@pytest.mark.parametrize("truncate", ["left", "middle"])
def test_two_tokens_for_the_prompt_hold_the_first_and_the_last_one(truncate: Any) -> None:
    assert cut(LONG, 3, truncate=truncate, max_tokens=1) == [BOS, LONG[-1]]


@given(
    tokens=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    context_len=st.integers(4, 40),
    truncate=st.sampled_from(["left", "middle"]),
    max_tokens=st.none() | st.integers(0, 2),
)
def test_a_cut_is_exact_and_what_is_kept_is_a_beginning_and_an_end(
    tokens: list[int], context_len: int, truncate: Any, max_tokens: int | None
) -> None:
    remaining = cut(tokens, context_len, truncate=truncate, max_tokens=max_tokens)
    available = context_len - (1 if max_tokens is None else max_tokens)
    assert len(remaining) == min(len(tokens), available)
    assert any(
        remaining == tokens[:head] + tokens[len(tokens) - len(remaining) + head :] for head in range(len(remaining) + 1)
    )


# Large texts: only their ends are tokenized.

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN3 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT_OSS = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _byte_level(expression: str) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(expression), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


MARKED = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "GPT-2": {"pre_tokenizer": pre_tokenizers.ByteLevel()},
    "Llama 3": {"pre_tokenizer": _byte_level(LLAMA3)},
    "Qwen 3": {"pre_tokenizer": _byte_level(QWEN3), "normalizer": normalizers.NFC()},
    "gpt-oss": {"pre_tokenizer": _byte_level(GPT_OSS)},
    "Metaspace": {"pre_tokenizer": pre_tokenizers.Metaspace()},
    "Metaspace, first": {"pre_tokenizer": pre_tokenizers.Metaspace(prepend_scheme="first")},
    "Llama 2": {"normalizer": MARKED},
}
WORDS = [
    "the",
    " hello",
    " world",
    "'ll",
    " don't",
    " 1234567",
    " 12",
    "3.14",
    "\n",
    "\r\n\r\n",
    "  ",
    "    ",
    "e\u0301",
]
WORDS += [
    " né",
    "世界",
    "。",
    "\U0001f600",
    "<|im_end|>",
    "<|im_start|>user\n",
    "aaaaaaa",
    " ...",
    "!?",
    "\t",
    "_x_",
    " A",
    "B",
]


@cache
def _configured(name: str) -> Tokenizer:
    """Return a tokenizer that splits texts as a family of models does, trained on a few words."""
    if name == "built-in":
        return tokenizer(None)
    parts = CONFIGURATIONS[name]
    is_byte_level = "ByteLevel" in str(parts.get("pre_tokenizer"))
    made = Backend(models.BPE(byte_fallback=not is_byte_level, unk_token=None if is_byte_level else "<0x00>"))
    for part, value in parts.items():
        setattr(made, part, value)
    if name == "Llama 2":
        made.pre_tokenizer = pre_tokenizers.Metaspace()  # as SentencePiece learns; it goes after that
    alphabet = pre_tokenizers.ByteLevel.alphabet() if is_byte_level else [*string.printable]
    fallbacks = [] if is_byte_level else [f"<0x{byte:02X}>" for byte in range(256)]
    special = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=alphabet, special_tokens=[*special, *fallbacks], show_progress=False
    )
    made.train_from_iterator(["".join(WORDS) * 3, "the hello the world", " world" * 9, "    " * 9], trainer)
    if name == "Llama 2":
        made.pre_tokenizer = None  # pyright: ignore[reportAttributeAccessIssue]
    made.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    return Tokenizer(made, special_tokens={"bos_token": "<s>", "eos_token": "</s>"})


@pytest.fixture
def small_units() -> Any:
    """Sizes as small as the texts of these tests."""
    sizes = patch.multiple(truncation, SEARCH_CHARACTERS=32, MARGIN_TOKENS=0, CHARACTERS_PER_TOKEN=1)
    with sizes, patch.object(encoding, "LARGE_CHARACTERS", 32):
        yield


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("name", ["built-in", *CONFIGURATIONS])
@given(
    words=st.lists(st.sampled_from(WORDS) | st.text(max_size=3), min_size=40, max_size=100),
    truncate=st.sampled_from(["left", "middle"]),
    begins=st.booleans(),
)
def test_the_ends_of_a_text_have_the_tokens_that_the_whole_text_has_there(
    name: str, words: list[str], truncate: Any, begins: bool
) -> None:
    text = "".join(word + " no"[index % 2 :] + " \n"[index % 3 == 0] for index, word in enumerate(words))
    found = _configured(name)
    request = Generate(prompt=text, truncate=truncate, max_tokens=0)
    whole = list(found.encode(text, add_special_tokens=begins))
    for context_len in range(3, 60):
        ends = Encoder(found, context_len).encode_ends(text, "prompt", add_special_tokens=begins, truncate=truncate)
        assert truncate_prompt(request, ends, context_len, found.bos_token_id) == truncate_prompt(
            request, whole, context_len, found.bos_token_id
        )


TEXTS = {
    "words": "hello the world ",
    "one letter": "a",
    "spaces": " ",
    "no word's end": "<|im_start|>",
    "bytes": "\x00",
}


@pytest.mark.parametrize("truncate", ["left", "middle"])
@pytest.mark.parametrize("unit", TEXTS.values(), ids=TEXTS)
def test_what_is_tokenized_does_not_grow_with_the_text(unit: str, truncate: Any) -> None:
    found = tokenizer(None)
    sizes: dict[int, int] = {}
    for size in (2**20, 2**24):
        tokenized: list[int] = []

        class Spy(Encoder):
            def _tokenize(self, text: str, field: str = "", *, add_special_tokens: bool = False) -> list[int]:
                tokenized.append(len(text))  # noqa: B023
                return super()._tokenize(text, field, add_special_tokens=add_special_tokens)

        text = unit * (size // len(unit))
        tokens = Spy(found, context_len=100).encode_ends(text, "prompt", add_special_tokens=False, truncate=truncate)
        assert len(tokens) > 100
        sizes[size] = sum(tokenized)
    assert sizes[2**20] == sizes[2**24] < 2**17


@pytest.mark.parametrize("truncate", ["left", "middle"])
def test_a_cut_leaves_nothing_of_a_special_tokens_text(truncate: Any) -> None:
    """Wherever it falls: the text has no place where a word ends."""
    found = Encoder(tokenizer(None), context_len=100)
    special = found.encode("<|im_start|>", "prompt", add_special_tokens=False, allow_overflow=True)
    assert len(special) == 1
    for shift in range(12):
        text = "<|im_start|>" * 10_000 + "!" * shift + "<|im_end|>"
        tokens = found.encode_ends(text, "prompt", add_special_tokens=False, truncate=truncate)
        cut = truncate_prompt(Generate(prompt=text, truncate=truncate), tokens, 100)
        whole = truncate_prompt(
            Generate(prompt=text, truncate=truncate),
            found.encode(text, "prompt", add_special_tokens=False, allow_overflow=True),
            100,
        )
        assert cut == whole
