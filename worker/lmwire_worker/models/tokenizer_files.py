"""Read a tokenizer from a model's files as the classes of transformers do, without that library, whose import is slow.

The library has a class for each model type. Most of them take tokenizer.json as it is. Some keep its vocabulary, and
replace its other steps by steps of their own; `CLASSES` has those of the usual text models. The choice of the class
follows `AutoTokenizer.from_pretrained`, the special tokens follow `PreTrainedTokenizerBase` and `TokenizersBackend`:
https://github.com/huggingface/transformers/blob/main/src/transformers/tokenization_utils_tokenizers.py.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from .architectures import is_known
from .model_files import MAX_TEXT_BYTES, bad_model, read_file, read_json
from .settings_check import MAX_TEMPLATE_CHARACTERS, MAX_TEMPLATES
from .tokenizer import UNBOUNDED, ChatTemplates, Tokenizer

TOKENIZER: Final = "tokenizer.json"
SETTINGS: Final = "tokenizer_config.json"
SPECIAL_TOKENS: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_ADDITIONAL: Final = "additional_special_tokens"
_EXTRA: Final = "extra_special_tokens"
_TEMPLATE: Final = "chat_template"
_UNUSUAL: Final = ("auto_map", "fast_tokenizer_files", "fix_mistral_regex", "init_inputs")
"""Settings that only transformers follows: code, other files and other steps."""


class _Model(msgspec.Struct):
    """The vocabulary of a tokenizer.json, which is not decoded here."""

    type: str | None = None
    vocab: msgspec.Raw = msgspec.Raw()
    merges: msgspec.Raw = msgspec.Raw()


class _File(msgspec.Struct):
    """A tokenizer.json."""

    model: _Model
    added_tokens: list[dict[str, Any]] = []
    post_processor: msgspec.Raw = msgspec.Raw(b"null")
    padding: dict[str, Any] | None = None


class _Class(msgspec.Struct, frozen=True):
    """A class of transformers that keeps a file's vocabulary, merges and post-processor, and replaces the rest."""

    set_steps: Callable[[Backend, Mapping[str, Any]], None]
    """Give a backend the class's steps, with the settings of the folder."""
    model: dict[str, Any]
    """The settings of its BPE. A text is the name of the special token to put there."""
    special_tokens: Mapping[Any, str] = {}
    """The special tokens of folders that name none."""
    adds_all: bool = False
    """Take all special tokens as they are, with and without spaces around them."""


_BYTES: Final = {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
_END_OF_TEXT: Final = "<|endoftext|>"
_CONTRACTIONS: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_QWEN2: Final = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN3_5: Final = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _set_qwen(pattern: str) -> Callable[[Backend, Mapping[str, Any]], None]:
    def set_steps(backend: Backend, settings: Mapping[str, Any]) -> None:
        split = pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False)
        spaced = bool(settings.get("add_prefix_space"))
        last = pre_tokenizers.ByteLevel(add_prefix_space=spaced, use_regex=False)
        backend.normalizer = normalizers.NFC()
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, last])
        backend.decoder = decoders.ByteLevel()

    return set_steps


def _set_gpt2(backend: Backend, settings: Mapping[str, Any]) -> None:
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(settings.get("add_prefix_space")))
    backend.decoder = decoders.ByteLevel()


def _set_gpt_neox(backend: Backend, settings: Mapping[str, Any]) -> None:
    _set_gpt2(backend, settings)
    backend.normalizer = normalizers.NFC()
    backend.post_processor = processors.TemplateProcessing(single="$A:0", pair="$A:0 $B:1", special_tokens=[])


def _set_llama(backend: Backend, settings: Mapping[str, Any]) -> None:
    given = settings.get("add_prefix_space")
    spaced = True if given is None else bool(given)
    scheme = "never" if not spaced else "always" if settings.get("legacy", False) else "first"
    backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=False)
    steps: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*steps, decoders.Strip(content=" ", left=1)] if spaced else steps)


def _set_gemma(backend: Backend, _: Mapping[str, Any]) -> None:
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(pattern=" ", behavior="merged_with_previous", invert=False)
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])


_ALL_END_OF_TEXT: Final = dict.fromkeys(("unk_token", "bos_token", "eos_token"), _END_OF_TEXT)
_QWEN_TOKENS: Final = dict.fromkeys(("unk_token", "eos_token", "pad_token"), _END_OF_TEXT)
CLASSES: Final = {
    "Qwen2Tokenizer": _Class(_set_qwen(_QWEN2), _BYTES, _QWEN_TOKENS, adds_all=True),
    "Qwen3_5Tokenizer": _Class(_set_qwen(_QWEN3_5), _BYTES, _QWEN_TOKENS),
    "GPT2Tokenizer": _Class(_set_gpt2, _BYTES, _ALL_END_OF_TEXT),
    "GPTNeoXTokenizer": _Class(_set_gpt_neox, _BYTES, _ALL_END_OF_TEXT | {"pad_token": "<|padding|>"}),
    "LlamaTokenizer": _Class(
        _set_llama,
        {"fuse_unk": True, "byte_fallback": True},
        {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
    ),
    "GemmaTokenizer": _Class(
        _set_gemma,
        {"fuse_unk": True, "byte_fallback": True, "unk_token": "unk_token"},
        {
            "unk_token": "<unk>",
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
        },
    ),
}
"""The classes that are read here although they replace the steps of a tokenizer.json."""
PLAIN: Final = "TokenizersBackend"
"""The class that takes a tokenizer.json as it is."""
_PLAIN_NAMES: Final = (PLAIN, "PreTrainedTokenizer", "PythonBackend")
"""The names of that class in folders, without `Fast`."""
CLASS_OF_TYPE: Final = {
    **dict.fromkeys(
        (
            "qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_vl",
            "qwen3_vl_moe",
        ),
        "Qwen2Tokenizer",
    ),
    **dict.fromkeys(("qwen3_5", "qwen3_5_moe"), "Qwen3_5Tokenizer"),
    **dict.fromkeys(("dbrx", "gpt2", "gptj", "phi", "starcoder2"), "GPT2Tokenizer"),
    **dict.fromkeys(("gpt_neox", "mamba", "mamba2", "falcon_mamba", "olmo", "olmoe"), "GPTNeoXTokenizer"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "recurrent_gemma"), "GemmaTokenizer"),
    **dict.fromkeys(("cohere", "cohere2"), "CohereTokenizer"),
    **dict.fromkeys(
        (
            "ernie4_5", "ernie4_5_moe", "glm", "glm4", "glm4_moe", "glm4_moe_lite", "gpt_bigcode", "granite",
            "granitemoe", "granitemoehybrid", "internlm2", "internlm3", "iquestcoder", "jamba", "kimi_k25",
            "kimi_linear", "llava", "mimo_v2_flash", "minicpm3", "minimax_m2", "ministral3", "mistral", "mistral3",
            "mixtral", "nemotron", "olmo2", "olmo3", "olmo_hybrid", "phi3", "phimoe", "pixtral", "stablelm",
        ),
        PLAIN,
    ),
}  # fmt: skip
"""The classes that transformers registers for the model types that mlx-lm has. It registers none for the others."""
CORRECTED_TYPES: Final = frozenset({"qwen2", "qwen3_5", "qwen3_5_moe"})
"""Model types whose registered class replaces the one that a folder names."""
_TEKKEN: Final = "tekken.json"
"""Mistral's own file, which transformers reads if Mistral's library is installed."""


def find_class(folder: Path, config: Mapping[str, Any], settings: Mapping[str, Any], content: bytes) -> str | None:
    """Return the name of the class that transformers would choose; None if only that library knows.

    Args:
        folder: The model's folder.
        config: Its config.json.
        settings: Its tokenizer_config.json.
        content: Its tokenizer.json.
    """
    if any(settings.get(name) for name in _UNUSUAL) or config.get("model_name") or (folder / _TEKKEN).exists():
        return None
    kind = config.get("model_type")
    if kind is not None and not (isinstance(kind, str) and is_known(kind)):
        return None  # a type of which `CLASS_OF_TYPE` says nothing
    registered = CLASS_OF_TYPE.get(kind) if kind is not None else None
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if named is None:
        chosen = registered or PLAIN
    elif not isinstance(named, str):
        return None
    else:
        chosen = named.removesuffix("Fast")
        if chosen == "LlamaTokenizer" and kind not in CORRECTED_TYPES and b'"ByteLevel"' in content:
            return PLAIN  # its own steps are not for such a vocabulary
        if registered is not None and registered != chosen:
            chosen = registered if registered == PLAIN or kind in CORRECTED_TYPES else chosen
    if chosen in _PLAIN_NAMES:
        return PLAIN
    return chosen if chosen in CLASSES else None


def read_tokenizer(
    folder: Path, config: Mapping[str, Any], settings: Mapping[str, Any], **options: Any
) -> Tokenizer | None:
    """Return the tokenizer of a folder; None if only transformers can read it.

    Args:
        folder: The folder, whose files are checked.
        config: Its config.json.
        settings: Its tokenizer_config.json.
        **options: Further arguments of `Tokenizer`.

    Raises:
        Exception: The files make no tokenizer. Their values may lead to any.
    """
    path = folder / TOKENIZER
    if not path.exists():
        return None
    content = read_file(path, MAX_TEXT_BYTES)
    name = find_class(folder, config, settings, content)
    if name is None:
        return None
    file = msgspec.json.decode(content, type=_File)
    own = CLASSES.get(name)
    if own and (file.model.type != "BPE" or not file.model.vocab or not file.model.merges):
        return None
    special = _SpecialTokens(folder, settings, file, own.special_tokens if own else {})
    backend = Backend.from_buffer(content) if own is None else _rebuild(own, file, settings, special.named)
    backend.encode_special_tokens = bool(settings.get("split_special_tokens", False))
    special.add_to(backend, take_all=own is not None and own.adds_all)
    is_bpe = type(backend.model).__name__ == "BPE"
    forced = settings.get("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", False)
    limit = settings.get("model_max_length", settings.get("max_len"))
    return Tokenizer(
        backend,
        special_tokens={name: str(token) for name, token in special.named.items()},
        chat_template=_read_templates(folder, settings),
        response_template=settings.get("response_template"),
        model_max_length=UNBOUNDED if limit is None else limit,
        cleans_up_spaces=bool(settings.get("clean_up_tokenization_spaces", False)) and (forced or not is_bpe),
        **options,
    )


def _rebuild(own: _Class, file: _File, settings: Mapping[str, Any], named: Mapping[str, Any]) -> Backend:
    """Return the backend of a class that replaces the steps of a file."""
    model = {name: str(named[value]) if name == "unk_token" else value for name, value in own.model.items()}
    program = {
        "version": "1.0",
        "added_tokens": [],
        "post_processor": file.post_processor,
        "model": {"type": "BPE", **model, "vocab": file.model.vocab, "merges": file.model.merges},
    }
    backend = Backend.from_buffer(msgspec.json.encode(program))
    own.set_steps(backend, settings)
    return backend


class _SpecialTokens:
    """The special tokens and the added tokens of a folder.

    Args:
        folder: The folder.
        settings: Its tokenizer_config.json.
        file: Its tokenizer.json.
        defaults: The special tokens of a folder that names none.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], file: _File, defaults: Mapping[str, str]) -> None:
        self.added: dict[int, AddedToken] = {}
        """Tokens outside the vocabulary proper, by their ids."""
        found = {name: _token(value) for name, value in settings.items()}
        if _ADDITIONAL in found and not found.get(_EXTRA):
            found[_EXTRA] = found.pop(_ADDITIONAL)
        own = {name: text for name, text in settings.items() if name.endswith("_token") and isinstance(text, str)}
        own = {name: text for name, text in own.items() if name not in SPECIAL_TOKENS}
        own |= _taken(found)
        listed = settings.get("added_tokens_decoder")
        if listed is not None:
            self.added = {int(number): AddedToken(**_fields(token)) for number, token in listed.items()}
        else:
            self._read_lists(folder, found, own, file)
        if file.padding and "pad_token" not in found:
            found["pad_token"] = file.padding.get("pad_token")
        texts = {str(token): token for token in self.added.values()}
        named: dict[str, Any] = {}
        for name in SPECIAL_TOKENS:
            value = found[name] if name in found else defaults.get(name)
            if isinstance(value, str | AddedToken):
                named[name] = texts.get(str(value), value) if name in found else value
            elif value is not None:
                raise TypeError(f"{name} is a {type(value).__name__}, and must be a token")
        self.named: dict[str, str | AddedToken] = named | own
        """The special tokens by their names."""
        self.further: list[str | AddedToken] = [*map(_token, found.get(_EXTRA) or found.get(_ADDITIONAL) or ())]
        """Special tokens without names."""

    def _read_lists(self, folder: Path, found: dict[str, Any], own: dict[str, Any], file: _File) -> None:
        """Read the tokens from the files of folders whose settings list none."""
        path = folder / "special_tokens_map.json"
        for name, value in (read_json(path) if path.exists() else {}).items():
            if isinstance(value, dict) and name != _EXTRA:
                found[name] = _special(value)
            elif name == _EXTRA and isinstance(value, list):
                known = list(found.get(_EXTRA) or ())
                tokens = [_special(token) if isinstance(token, dict) else token for token in value]
                found[name] = [*known, *(token for token in tokens if token not in known)]
            else:
                found[name] = value
        own |= _taken(found)
        path = folder / "added_tokens.json"
        if path.exists():
            special = {str(found[name]) for name in SPECIAL_TOKENS if found.get(name)}
            special.update(map(str, found.get(_EXTRA) or ()))
            for text, number in read_json(path).items():
                is_special = text in special
                self.added[number] = AddedToken(text, normalized=not is_special, special=is_special)
        for token in file.added_tokens:
            number = token.pop("id")
            self.added[number] = AddedToken(**token)

    def add_to(self, backend: Backend, *, take_all: bool) -> None:
        """Add the tokens to a backend in the order of their ids.

        Args:
            backend: The backend.
            take_all: Add all special tokens once more, as they are.
        """
        tokens: list[Any] = [token for _, token in sorted(self.added.items())]
        known = {str(token) for token in backend.get_added_tokens_decoder().values()} | set(map(str, tokens))
        for token in (*self.named.values(), *self.further):
            if str(token) not in known:
                known.add(str(token))
                tokens.append(token)
        names = {str(token) for token in self.named.values()}
        for at, token in enumerate(tokens):
            if isinstance(token, str):
                tokens[at] = AddedToken(token, special=True)
            elif str(token) in names:
                token.special = True
        if tokens:
            backend.add_tokens(tokens)
        if take_all:
            texts = dict.fromkeys(map(str, (*self.named.values(), *self.further)))
            backend.add_tokens([AddedToken(text, special=True) for text in texts])


def _taken(found: dict[str, Any]) -> dict[str, Any]:
    """Remove extra special tokens that have names, and return them."""
    return found.pop(_EXTRA) if isinstance(found.get(_EXTRA), dict) else {}


def _token(value: Any) -> Any:
    """Return a value of the files; a token if it describes one."""
    if isinstance(value, dict) and value.get("__type") == "AddedToken":
        return AddedToken(**_fields(value))
    if isinstance(value, list):
        return [_token(member) for member in value]
    return {name: _token(member) for name, member in value.items()} if isinstance(value, dict) else value


def _special(token: dict[str, Any]) -> AddedToken:
    fields: dict[str, Any] = {**_fields(token), "special": True}
    return AddedToken(**fields)


def _fields(token: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in token.items() if name != "__type"}


def _read_templates(folder: Path, settings: Mapping[str, Any]) -> ChatTemplates:
    """Return the chat templates of a folder. Files of their own win over the settings."""
    found = {}
    if (path := folder / f"{_TEMPLATE}.jinja").exists():
        found["default"] = read_file(path, MAX_TEMPLATE_CHARACTERS).decode()
    further = sorted((folder / "additional_chat_templates").glob("*.jinja"))
    if len(further) > MAX_TEMPLATES:
        raise bad_model(folder, f"has {len(further):,} chat templates; at most {MAX_TEMPLATES} are read")
    for path in further:
        found[path.stem] = read_file(path, MAX_TEMPLATE_CHARACTERS).decode()
    if found:
        return found["default"] if list(found) == ["default"] else found
    template = settings.get(_TEMPLATE)
    if isinstance(template, list):
        return {part["name"]: part["template"] for part in template}
    return template
