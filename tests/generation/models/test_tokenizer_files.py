"""Tokenizers that the worker reads itself are those that transformers makes of the same folder."""

import json
import string
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend
from transformers import AutoTokenizer
from transformers.models.auto.tokenization_auto import (
    MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS,
    TOKENIZER_MAPPING_NAMES,
)

from lmwire_protocol import RequestError
from lmwire_worker.models.architectures import remapped_types
from lmwire_worker.models.resolve import BUILTIN
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.models.tokenizer_files import CLASS_OF_TYPE, CORRECTED_TYPES, PLAIN, read_tokenizer
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from random_model import write_model
from support.models.hostile_tokenizers import plain

SPECIAL: Final = ("<s>", "</s>", "<unk>", "<|endoftext|>", "<|im_end|>", "<mask>")
TEXTS: Final = (
    "", " ", "a", " a", "Hello, world!", "  two  spaces\n\n\tand a tab ",
    "<s>x</s> y<|im_end|>\nz<mask> <tool>a</tool>",
    "Grüße e\u0301 界面 👩‍👩‍👧 \u200d", "it's 1234567 I'VE don't , . ! ? n't", "caf\u00e9 \u2581x ﬁ", "\x00\x7f\ufffd",
)  # fmt: skip
WORDS: Final = (
    "the hello world is of and Hello, it's 12345 don't " * 9,
    "Grüße 界面 caf\u00e9 e\u0301 " * 5,
    "\n\n  \t",
)
LINES: Final = "{{ messages[0].content }}"


def model_of(kind: str) -> Any:
    return models.BPE(byte_fallback=kind == "pieces", unk_token="<unk>" if kind == "pieces" else None)


@cache
def trained(kind: str) -> str:
    """Return a tokenizer.json whose vocabulary has bytes, pieces of words as SentencePiece writes them, or words."""
    tokens: list[str | AddedToken] = [AddedToken(text, special=True, normalized=False) for text in SPECIAL]
    tokens += [AddedToken(text, special=False) for text in ("<tool>", "</tool>")]
    size = {"vocab_size": 700, "special_tokens": tokens, "show_progress": False}
    if kind == "bytes":
        made = Backend(model_of(kind))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer: Any = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **size)
    elif kind == "pieces":
        made = Backend(model_of(kind))
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        made.decoder = decoders.Sequence(steps)
        size["special_tokens"] = [*tokens, *(f"<0x{byte:02X}>" for byte in range(256))]
        trainer = trainers.BpeTrainer(initial_alphabet=[*string.printable], **size)
    elif kind == "words":
        made = Backend(models.WordPiece(unk_token="<unk>"))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(**size)
    else:
        made = Backend(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(unk_token="<unk>", **size)
    made.train_from_iterator(WORDS, trainer)
    begin = made.token_to_id("<s>")
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", begin)])
    return made.to_str()


def write(
    folder: Path,
    kind: str,
    config: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    parts: Mapping[str, Any] | None = None,
    **files: Any,
) -> Path:
    """Write the files of a tokenizer.

    Args:
        folder: Receives the files.
        kind: One of those of `trained`.
        config: Fields of config.json.
        settings: Fields of tokenizer_config.json.
        parts: Fields of tokenizer.json that replace the trained ones.
        **files: Further files by their names without `.json`.
    """
    config = {"model_type": "llama"} | dict(config or {})
    settings = {"tokenizer_class": "PreTrainedTokenizerFast"} if settings is None else settings
    content = json.loads(trained(kind)) | dict(parts or {})
    for name, value in {"config": config, "tokenizer_config": settings, "tokenizer": content, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def settings_of(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    return json.loads(path.read_text()) if path.exists() else {}


def check(folder: Path) -> Tokenizer:
    """Compare the worker's tokenizer of a folder with that of transformers, and return it."""
    config = json.loads((folder / "config.json").read_text())
    found = read_tokenizer(folder, config, settings_of(folder))
    assert found is not None, "the worker leaves it to transformers"
    theirs: Any = AutoTokenizer.from_pretrained(folder)
    assert found.special_tokens_map == theirs.special_tokens_map
    assert {number: repr(token) for number, token in found.added_tokens_decoder.items()} == {
        number: repr(token) for number, token in theirs.added_tokens_decoder.items()
    }
    assert (found.get_vocab(), len(found)) == (theirs.get_vocab(), len(theirs))
    assert (found.bos_token_id, found.eos_token_id) == (theirs.bos_token_id, theirs.eos_token_id)
    assert found.chat_template == theirs.chat_template
    assert found.model_max_length == theirs.model_max_length
    for text in TEXTS:
        for adds in (True, False):
            tokens = theirs.encode(text, add_special_tokens=adds)
            assert found.encode(text, add_special_tokens=adds) == tokens, text
            for skips in (True, False):
                decoded = theirs.decode(tokens, skip_special_tokens=skips)
                assert found.decode(tokens, skip_special_tokens=skips) == decoded, text
    for token in (*SPECIAL, "the", "missing!"):
        assert found.convert_tokens_to_ids(token) == theirs.convert_tokens_to_ids(token)
    return found


def test_the_built_in_models_tokenizer() -> None:
    assert check(BUILTIN / "tiny").kind == "byte_level"


def test_a_random_models_tokenizer(tmp_path: Path) -> None:
    check(write_model(tmp_path, "qwen3"))


@pytest.mark.parametrize("kind", ["bytes", "pieces", "words", "unigram"])
@pytest.mark.parametrize("settings", [{}, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>"}])
def test_a_file_is_taken_as_it_is(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    check(write(tmp_path, kind, settings=settings))


CLASSES: Final = [
    ("bytes", "qwen3", "Qwen2Tokenizer", {}),
    ("bytes", "qwen3", "Qwen2TokenizerFast", {"add_prefix_space": True, "bos_token": None, "errors": "replace"}),
    ("bytes", "qwen2", "LlamaTokenizerFast", {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}),
    ("bytes", "qwen3", None, {"eos_token": "<|im_end|>"}),
    ("bytes", "qwen3_5", "Qwen2Tokenizer", {"eos_token": "<|im_end|>"}),
    ("bytes", "phi", "GPT2Tokenizer", {"add_prefix_space": True}),
    ("bytes", "starcoder2", "CodeGenTokenizer", {"tokenizer_class": "GPT2TokenizerFast", "unk_token": "<unk>"}),
    ("bytes", "olmo", "GPTNeoXTokenizerFast", {"add_bos_token": True, "eos_token": "</s>"}),
    ("bytes", "llama", "LlamaTokenizer", {"bos_token": "<s>"}),
    ("pieces", "llama", "LlamaTokenizer", {"legacy": False}),
    ("pieces", "llama", "LlamaTokenizerFast", {"legacy": True, "add_bos_token": True, "add_eos_token": True}),
    ("pieces", "llama", "LlamaTokenizer", {"add_prefix_space": False, "clean_up_tokenization_spaces": True}),
    ("pieces", "mistral", "LlamaTokenizer", {"unk_token": "<unk>"}),
    ("pieces", "gemma3", "GemmaTokenizer", {"bos_token": "<s>", "unk_token": "<unk>", "pad_token": None}),
    ("pieces", "gemma2", "GemmaTokenizerFast", {"boi_token": "<boi>", "image_token": "<mask>"}),
    ("pieces", "phi3", "LlamaTokenizerFast", {"eos_token": "<|endoftext|>"}),
]


@pytest.mark.parametrize(("kind", "model_type", "name", "settings"), CLASSES)
def test_a_class_replaces_the_steps_of_the_file(
    kind: str, model_type: str, name: str | None, settings: dict[str, Any], tmp_path: Path
) -> None:
    named = {} if name is None else {"tokenizer_class": name}
    check(write(tmp_path, kind, {"model_type": model_type}, named | settings))


def token(content: str, **fields: Any) -> dict[str, Any]:
    sides = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized", "special"), False)
    return {"content": content, **sides, **fields}


NEW: Final = {"900": token("<new>", lstrip=True, special=True), "901": token("<plain>", rstrip=True)}
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "a list of added tokens": {"added_tokens_decoder": NEW, "mask_token": "<plain>"},
    "tokens that are objects": {"eos_token": token("</s>") | {"__type": "AddedToken"}, "pad_token": "<pad>"},
    "additional tokens": {"additional_special_tokens": ["<one>", token("<two>") | {"__type": "AddedToken"}]},
    "both names of further tokens": {"additional_special_tokens": ["<one>"], "extra_special_tokens": ["<two>"]},
    "extra tokens with names": {"extra_special_tokens": {"image_token": "<image>", "boi_token": "<s>"}},
    "a token of the model's own": {"image_token": "<image>", "bos_token": "<s>"},
    "texts without spaces": {"clean_up_tokenization_spaces": True, "unk_token": "<unk>"},
    "texts that are corrupted on purpose": {
        "clean_up_tokenization_spaces": True,
        "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True,
    },
    "names of special tokens as text": {"split_special_tokens": True},
    "an older length": {"max_len": 99},
    "a length": {"model_max_length": 1000000000000000019884624838656},
    "one template": {"chat_template": LINES},
    "several templates": {"chat_template": [{"name": "default", "template": LINES}, {"name": "rag", "template": "x"}]},
}


@pytest.mark.parametrize("kind", ["bytes", "words"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_settings_of_a_folder(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    check(write(tmp_path, kind, settings={"tokenizer_class": "PreTrainedTokenizerFast"} | settings))


@pytest.mark.parametrize("settings", [{}, {"added_tokens_decoder": NEW}, {"extra_special_tokens": ["<one>"]}])
def test_older_files_with_special_and_added_tokens(settings: dict[str, Any], tmp_path: Path) -> None:
    special = {
        "bos_token": token("<s>", lstrip=True),
        "eos_token": "<end>",
        "additional_special_tokens": ["<further>", "<mask>"],
        "extra_special_tokens": [{"content": "<other>", "lstrip": True}, "<one>"],
    }
    added = {"<end>": 905, "<added>": 906}
    write(tmp_path, "bytes", settings=settings, special_tokens_map=special, added_tokens=added)
    check(tmp_path)


def test_a_file_that_pads_and_truncates(tmp_path: Path) -> None:
    padding = {
        "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 2, "pad_type_id": 0,
        "pad_token": "<unk>",
    }  # fmt: skip
    truncation = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    check(write(tmp_path, "bytes", parts={"padding": padding, "truncation": truncation, "post_processor": None}))


def test_templates_in_files_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "bytes", settings={"chat_template": "{{ unused }}"})
    (tmp_path / "chat_template.jinja").write_text(LINES)
    assert check(tmp_path).chat_template == LINES
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools }}")
    found = check(tmp_path)
    assert found.get_chat_template(tools=True) == "{{ tools }}" and found.get_chat_template(tools=False) == LINES


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [
        ("cohere", {"tokenizer_class": "CohereTokenizer"}),
        ("llama", {"tokenizer_class": "CodeLlamaTokenizer"}),
        ("llama", {"tokenizer_class": "XLMRobertaTokenizer"}),
        ("kimi_k2", {"auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}}),
        ("llama", {"fast_tokenizer_files": ["tokenizer.4.0.0.json"]}),
        ("mistral", {"tokenizer_class": "LlamaTokenizer", "fix_mistral_regex": True}),
        ("llava_next", {"tokenizer_class": "LlamaTokenizer"}),
        ("bert", {}),
    ],
)
def test_other_folders_are_left_to_transformers(model_type: str, settings: dict[str, Any], tmp_path: Path) -> None:
    config = {"model_type": model_type}
    assert read_tokenizer(write(tmp_path, "bytes", config, settings), config, settings) is None


def test_a_class_is_not_given_a_vocabulary_of_another_kind(tmp_path: Path) -> None:
    config = {"model_type": "llama"}
    write(tmp_path, "unigram", config, {"tokenizer_class": "LlamaTokenizer"})
    assert read_tokenizer(tmp_path, config, settings_of(tmp_path)) is None


def test_more_templates_than_any_model_has_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "bytes")
    (tmp_path / "additional_chat_templates").mkdir()
    for number in range(101):
        (tmp_path / "additional_chat_templates" / f"{number}.jinja").write_text(LINES)
    with pytest.raises(RequestError, match="101 chat templates"):
        load_tokenizer(tmp_path, {"model_type": "llama"}, trust_remote_code=False)


def test_mistrals_own_file_is_left_to_transformers(tmp_path: Path) -> None:
    write(tmp_path, "bytes", {"model_type": "mistral"})
    (tmp_path / "tekken.json").write_text("{}")
    assert read_tokenizer(tmp_path, {"model_type": "mistral"}, settings_of(tmp_path)) is None


def test_the_tokenizer_that_transformers_reads_has_the_same_interface(tmp_path: Path) -> None:
    write(tmp_path, "bytes", {"model_type": "cohere"}, {"tokenizer_class": "CohereTokenizer", "eos_token": "</s>"})
    found = load_tokenizer(tmp_path, {"model_type": "cohere"}, trust_remote_code=False)
    theirs: Any = AutoTokenizer.from_pretrained(tmp_path)
    assert type(found) is not Tokenizer and found.kind == "byte_level"
    for text in TEXTS:
        assert found.encode(text) == theirs.encode(text)
        assert found.decode(found.encode(text)) == theirs.decode(theirs.encode(text))
    assert found.eos_token_ids == {theirs.eos_token_id} and found.get_vocab() == theirs.get_vocab()


@pytest.mark.parametrize(
    ("config", "generation", "ends"),
    [
        ({"eos_token_id": 5}, None, {5}),
        ({"eos_token_id": [5, 6]}, {"eos_token_id": 7}, {7}),
        ({}, {"eos_token_id": [7, 8]}, {7, 8}),
        ({"eos_token_id": 5}, {}, {5}),
        ({}, None, set()),
    ],
)
def test_a_turn_ends_at_the_tokens_of_all_files(
    config: dict[str, Any], generation: dict[str, Any] | None, ends: set[int], tmp_path: Path
) -> None:
    files = {} if generation is None else {"generation_config": generation}
    write(tmp_path, "bytes", config, {"eos_token": "</s>"}, **files)
    found = load_tokenizer(tmp_path, {"model_type": "llama"} | config, trust_remote_code=False)
    assert found.eos_token_ids == ends | {found.eos_token_id}


def test_a_plain_file_without_settings(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(plain()))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    check(tmp_path)


def test_the_classes_are_those_that_transformers_registers() -> None:
    spec = find_spec("mlx_lm.models")
    assert spec is not None and spec.submodule_search_locations is not None
    modules = {path.stem for place in spec.submodule_search_locations for path in Path(place).glob("*.py")}
    kinds = modules | set(remapped_types("mlx_lm"))
    registered = {kind: TOKENIZER_MAPPING_NAMES.get(kind) for kind in kinds}
    plain_names = ("MistralCommonBackend", "PreTrainedTokenizerFast", PLAIN)
    expected = {
        kind: PLAIN if name in plain_names else name.removesuffix("Fast") for kind, name in registered.items() if name
    }
    assert {kind: name for kind, name in CLASS_OF_TYPE.items() if kind in kinds} == expected
    special = {kind for kind in kinds & MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS if expected[kind] != PLAIN}
    assert special == CORRECTED_TYPES
