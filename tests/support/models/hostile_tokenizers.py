"""Tokenizers that take endless time or memory, or fail, when they are loaded or used."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Content = dict[str, Any]


def plain() -> Content:
    """Return a tokenizer.json of bytes, which is as it should be."""
    letters = [chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 256)]]
    letters += [chr(256 + number) for number in range(256 - len(letters))]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(256, "<|end|>")],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {letter: at for at, letter in enumerate(letters)}, "merges": []},
    }


def added(id: int, content: str, **fields: Any) -> Content:
    """Return an added token."""
    base = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": id, "content": content, **base, **fields}


def write_tokenizer(folder: Path, content: Any) -> Path:
    """Write a tokenizer.json into a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return folder


def replacing(*pairs: tuple[str, str]) -> Content:
    """Return a normalizer that replaces texts, one after another."""
    steps = [{"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in pairs]
    return {"type": "Sequence", "normalizers": steps}


def splitting(pattern: str) -> Content:
    """Return a pre-tokenizer that splits with a regular expression."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, plain()["pre_tokenizer"] | {"use_regex": False}]}


def nested(depth: int) -> Content:
    """Return a normalizer in sequences in sequences."""
    step: Content = {"type": "NFC"}
    for _ in range(depth):
        step = {"type": "Sequence", "normalizers": [step]}
    return step


def template(items: int) -> Content:
    """Return a post-processor that inserts tokens."""
    special = {"<|end|>": {"id": "<|end|>", "ids": [256] * items, "tokens": ["<|end|>"] * items}}
    single = [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": special}


def with_model(**fields: Any) -> Content:
    """Return a tokenizer.json with another model."""
    return plain() | {"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": None, "model": fields}


EXCESSIVE: Final[dict[str, tuple[Callable[[], Any], str]]] = {
    "growing replacements": (
        lambda: plain() | {"normalizer": replacing(*[("a", "a" * 20)] * 6)},
        "makes texts 64,000,000 times as long in its normalizer",
    ),
    "replaced empty texts": (
        lambda: plain() | {"normalizer": replacing(("", "x" * 3000))},
        "makes texts 3,001 times as long",
    ),
    "a growing decoder": (
        lambda: plain() | {"decoder": {"type": "Sequence", "decoders": replacing(("a", "a" * 999))["normalizers"]}},
        "999 times as long in its decoder",
    ),
    "a pattern in the decoder": (
        lambda: plain() | {"decoder": {"type": "Replace", "pattern": {"Regex": "(a|a)+$"}, "content": ""}},
        "a regular expression in its decoder",
    ),
    "a long prefix": (
        lambda: plain() | {"normalizer": {"type": "Prepend", "prepend": "x" * 20_000_000}},
        "inserts a text of 20,000,000 characters in its normalizer",
    ),
    "a long mark of spaces": (
        lambda: plain() | {"decoder": {"type": "Metaspace", "replacement": "▁" * 5000, "prepend_scheme": "always"}},
        "inserts a text of 5,000 characters in its decoder",
    ),
    "many added tokens": (
        lambda: plain() | {"added_tokens": [added(256 + at, f"<{at}>") for at in range(400_000)]},
        "adds 400,000 tokens",
    ),
    "a long added token": (lambda: plain() | {"added_tokens": [added(256, "x" * 5000)]}, "a token of 5,000 characters"),
    "added tokens of many characters": (
        lambda: plain() | {"added_tokens": [added(256 + at, f"{at:4000}") for at in range(2500)]},
        "adds tokens of 10,000,000 characters",
    ),
    "an added token with a huge id": (lambda: plain() | {"added_tokens": [added(2**31, "x")]}, "whose ids are not"),
    "many steps": (
        lambda: plain() | {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 1000}},
        "1,001 steps in its normalizer",
    ),
    "deep sequences": (lambda: plain() | {"normalizer": nested(60)}, "nested deeper than 16 levels"),
    "a long pattern": (lambda: plain() | {"pre_tokenizer": splitting("x?" * 9000)}, "a pattern of 18,000 characters"),
    "a post-processor that inserts many tokens": (
        lambda: plain() | {"post_processor": template(1_000_000)},
        "1,000,000 items in ids",
    ),
    "padding without end": (
        lambda: plain()
        | {
            "padding": {
                "strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                "pad_type_id": 0, "pad_token": "a",
            }
        },
        "Fixed 1,000,000,000 in its padding",
    ),
    "truncation of 10^12 tokens": (
        lambda: plain()
        | {"truncation": {"direction": "Right", "max_length": 10**12, "strategy": "LongestFirst", "stride": 0}},
        "max_length 1,000,000,000,000 in its truncation",
    ),
    "words without end": (
        lambda: with_model(
            type="WordPiece", unk_token="a", continuing_subword_prefix="", max_input_chars_per_word=10**9, vocab={"": 0}
        ),
        "divides words of up to 1,000,000,000 characters",
    ),
    "a score that is no number": (
        lambda: with_model(type="Unigram", unk_id=0, vocab=[["a", 0.0], ["b", float("nan")]]),
        "is not a tokenizer.json",
    ),
    "an infinite score": (
        lambda: with_model(type="Unigram", unk_id=0, vocab=[["a", 0.0], ["b", -1e308 * 10]]),
        "is not a tokenizer.json",
    ),
    "a vocabulary of texts": (lambda: with_model(type="BPE", vocab="abc", merges=[]), "is not a tokenizer.json"),
    "a list": (lambda: [1, 2], "is not a tokenizer.json"),
}  # fmt: skip
"""Tokenizers that are refused for what they declare, and why."""

FAILING: Final[dict[str, tuple[Callable[[], Any], str]]] = {
    "a pattern that backtracks": (lambda: plain() | {"pre_tokenizer": splitting("(x+x+)+y")}, "fails on a text of"),
    "alternatives that backtrack": (lambda: plain() | {"pre_tokenizer": splitting("(a|a)+$")}, "fails on a text of"),
    "a step that there is not": (lambda: plain() | {"normalizer": {"type": "Grow"}}, "does not load"),
    "an unknown model": (lambda: with_model(type="Odd", vocab={}), "does not load"),
}
"""Tokenizers that fail in a trial, and how."""
