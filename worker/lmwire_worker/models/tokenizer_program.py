"""The program that a tokenizer.json declares, in steps: its bounds, and whether its time is known to be linear.

Any regular expression may take time that grows with the square of a text, or worse. The patterns of most models are a
few known ones, which do not; a tokenizer with other steps is used in a process that can be ended.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from .model_files import bad_model

MAX_ADDED_TOKENS: Final = 2**17
"""Maximum number of tokens outside the vocabulary proper. Models that speak have some 70,000 of them."""
MAX_ADDED_CHARACTERS: Final = 2**23
"""Maximum length of all added tokens together."""
MAX_VOCABULARY: Final = 2**21
"""Maximum number of tokens. The largest vocabularies have a million."""
MAX_TOKEN_CHARACTERS: Final = 4096
"""Maximum length of a token's text, and of any text that a step inserts. Real tokens have less than 1,000."""
MAX_PATTERN_CHARACTERS: Final = 10_000
"""Maximum length of a regular expression; known ones have some 500."""
MAX_STEPS: Final = 64
"""Maximum number of steps of each kind, in sequences within sequences."""
MAX_NESTING: Final = 16
"""Maximum depth of a step's description."""
MAX_GROWTH: Final = 64
"""Maximum factor by which the steps of a kind may lengthen a text."""
MAX_TEMPLATE_ITEMS: Final = 256
"""Maximum number of items in a post-processor's lists."""
MAX_LENGTH: Final = 2**24
"""Maximum length of a padded or truncated text, in tokens."""
MAX_WORD_CHARACTERS: Final = 10_000
"""Maximum length of the words that WordPiece divides, in time of the square of it."""
LINEAR_WORD_CHARACTERS: Final = 1000
LINEAR_TOKEN_CHARACTERS: Final = 256
"""Length of the longest token up to which Unigram is taken for linear: it tries all tokens at each character."""

MAX_STRIPPING_TOKENS: Final = 16
"""Maximum number of added tokens that strip spaces, in a linear tokenizer; real ones have one or two. Texts with such a
token are not linear: the library searches all of the text before or after it."""

_CONTRACTIONS: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE: Final = r"[^\r\n\p{L}\p{N}]?"
_SYMBOLS: Final = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_CASED: Final = rf"{_BEFORE}{_UPPER}*{_LOWER}+%s|{_BEFORE}{_UPPER}+{_LOWER}*%s"
_CASED_END: Final = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
LINEAR_PATTERNS: Final = frozenset(
    {
        # The built-in model; Llama 3 and GPT-4; Qwen 2 and 3; their successors with marks.
        *(
            rf"{_CONTRACTIONS}|{_BEFORE}\p{{L}}+|\p{{N}}{digits}|{_SYMBOLS}|{_SPACES}"
            for digits in ("", "{1,3}", "{1,2}")
        ),
        rf" ?\p{{L}}[\p{{L}}\p{{M}}]*|\p{{N}}|{_SYMBOLS}|{_SPACES}",
        rf"{_CONTRACTIONS}|{_BEFORE}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
        # GPT-4o, gpt-oss and Llama 4; Mistral's Tekken.
        *(
            rf"{_CASED % (end, end)}|\p{{N}}{digits}|{_CASED_END}|{_SPACES}"
            for end in ("", f"{_CONTRACTIONS}?")
            for digits in ("", "{1,3}")
        ),
        # GPT-2, in its two forms.
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        # DeepSeek.
        r"\p{N}{1,3}",
        "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "[\r\n]",
        r"[\r\n]",
        r"\s?\p{L}+",
        r"\s?\p{P}+",
        r"\p{N}+",
        # SentencePiece's, as converted.
        " {2,}",
    }
)
"""Regular expressions that take linear time, as measured: each scans a run of characters once."""
LINEAR_MODELS: Final = ("BPE", "WordPiece", "Unigram", "WordLevel")
LINEAR_STEPS: Final = frozenset(
    {
        "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "StripAccents", "Strip", "BertNormalizer", "Precompiled",
        "Prepend", "Replace", "ByteLevel", "BertPreTokenizer", "Metaspace", "Whitespace", "WhitespaceSplit", "Split",
        "Digits", "Punctuation", "CharDelimiterSplit", "UnicodeScripts", "Sequence", "TemplateProcessing",
        "BertProcessing", "RobertaProcessing", "Fuse", "ByteFallback", "WordPiece", "BPEDecoder",
    }
)  # fmt: skip
_PARTS: Final = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_STEPS: Final = ("normalizers", "pretokenizers", "processors", "decoders")
_INSERTED: Final = ("prepend", "content", "prefix", "suffix", "replacement", "delimiter", "cls", "sep")
_LENGTHS: Final = ("max_length", "stride", "pad_to_multiple_of", "Fixed", "max_input_chars_per_word", "start", "stop")


class _AddedToken(msgspec.Struct):
    content: str
    id: int = 0
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


class _Model(msgspec.Struct):
    type: str | None = None
    vocab: dict[str, int] | list[tuple[str, float]] | None = None
    max_input_chars_per_word: int = 100
    dropout: float | None = None


class _Program(msgspec.Struct):
    model: _Model
    added_tokens: list[_AddedToken] = []
    normalizer: Any = None
    pre_tokenizer: Any = None
    post_processor: Any = None
    decoder: Any = None
    truncation: Any = None
    padding: Any = None


class TokenizerProgram(msgspec.Struct, frozen=True):
    """A tokenizer.json within the bounds."""

    is_linear: bool
    """True if the time of every text is known to be in proportion to its length."""
    texts: list[str]
    """Texts for a trial: the patterns, what they are replaced with, and some of the added tokens."""


def read_program(path: Path, content: bytes) -> TokenizerProgram:
    """Check what a tokenizer.json declares.

    Args:
        path: The file, for the error.
        content: What it holds.

    Raises:
        RequestError: bad_model.
    """
    try:
        program = msgspec.json.decode(content, type=_Program)
    except (msgspec.MsgspecError, ValueError, RecursionError, MemoryError) as error:
        raise bad_model(path, f"is not a tokenizer.json: {str(error)[:300]}") from None
    try:
        longest = _check_vocabulary(program)
        steps = [[*_steps(getattr(program, part))] for part in _PARTS]
        for name, part in zip(_PARTS, steps, strict=True):
            _check_steps(name, part)
        _check_values("truncation", program.truncation)
        _check_values("padding", program.padding)
    except _ExcessError as error:
        raise bad_model(path, str(error)) from None
    before = [step for part in steps for step in part]
    texts = [text for step in before for text in _texts(step)]
    texts += [token.content for token in program.added_tokens[:8]]
    return TokenizerProgram(_is_linear(program, steps, longest), texts)


def steps_are_linear(part: Any) -> bool:
    """Return whether all steps of a normalizer, a pre-tokenizer, a post-processor or a decoder are known to be linear.

    Args:
        part: The description of the part; None for none.
    """
    return all(map(_is_linear_step, _steps(part)))


class _ExcessError(Exception):
    """A tokenizer declares too much. The message is the rest of a sentence that begins with the file."""


def _check_vocabulary(program: _Program) -> int:
    """Return the length of the longest token."""
    added, vocab = program.added_tokens, program.model.vocab
    if len(added) > MAX_ADDED_TOKENS:
        raise _ExcessError(f"adds {len(added):,} tokens; {MAX_ADDED_TOKENS:,} are the most that are loaded")
    if (total := sum(len(token.content) for token in added)) > MAX_ADDED_CHARACTERS:
        raise _ExcessError(
            f"adds tokens of {total:,} characters; {MAX_ADDED_CHARACTERS:,} are the most that are loaded"
        )
    if vocab is None:
        raise _ExcessError("has no vocabulary")
    if len(vocab) > MAX_VOCABULARY:
        raise _ExcessError(f"has {len(vocab):,} tokens; {MAX_VOCABULARY:,} are the most that are loaded")
    if isinstance(vocab, list) and not all(map(math.isfinite, (score for _, score in vocab))):
        raise _ExcessError("has tokens whose scores are no numbers")
    if any(not 0 <= token.id < MAX_VOCABULARY for token in added):
        raise _ExcessError(f"has added tokens whose ids are not from 0 to {MAX_VOCABULARY:,}")
    texts = vocab if isinstance(vocab, dict) else (text for text, _ in vocab)
    longest = max(max(map(len, texts), default=0), max((len(token.content) for token in added), default=0))
    if longest > MAX_TOKEN_CHARACTERS:
        raise _ExcessError(f"has a token of {longest:,} characters; {MAX_TOKEN_CHARACTERS:,} are the most")
    if program.model.max_input_chars_per_word > MAX_WORD_CHARACTERS:
        words = f"{program.model.max_input_chars_per_word:,} characters; {MAX_WORD_CHARACTERS:,} are the most"
        raise _ExcessError(f"divides words of up to {words}")
    return longest


def _check_steps(part: str, steps: list[dict[str, Any]]) -> None:
    if len(steps) > MAX_STEPS:
        raise _ExcessError(f"has {len(steps):,} steps in its {part}; {MAX_STEPS} are the most")
    growth = 1.0
    for step in steps:
        _check_values(part, step)
        growth *= _growth(step)
        if part == "decoder" and step.get("type") == "Replace" and "Regex" in _pattern(step):
            raise _ExcessError("has a regular expression in its decoder, which runs for each token; use a `String`")
    if growth > MAX_GROWTH:
        raise _ExcessError(f"makes texts {growth:,.0f} times as long in its {part}; {MAX_GROWTH} times is the most")


def _check_values(part: str, value: Any, key: str = "", depth: int = 0) -> None:
    """Check the sizes of all members of a step's description."""
    if depth > MAX_NESTING:
        raise _ExcessError(f"is nested deeper than {MAX_NESTING} levels in its {part}")
    if isinstance(value, dict | list) and key not in _STEPS and len(value) > MAX_TEMPLATE_ITEMS:
        raise _ExcessError(f"has {len(value):,} items in {key or part}; {MAX_TEMPLATE_ITEMS} are the most")
    if isinstance(value, dict):
        for name, member in value.items():
            if name not in _STEPS:
                _check_values(part, member, name, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _check_values(part, member, key, depth + 1)
    elif isinstance(value, str) and key in ("Regex", "String") and len(value) > MAX_PATTERN_CHARACTERS:
        raise _ExcessError(
            f"has a pattern of {len(value):,} characters in its {part}; {MAX_PATTERN_CHARACTERS:,} are the most"
        )
    elif isinstance(value, str) and key in _INSERTED and len(value) > MAX_TOKEN_CHARACTERS:
        raise _ExcessError(
            f"inserts a text of {len(value):,} characters in its {part}; {MAX_TOKEN_CHARACTERS:,} are the most"
        )
    elif isinstance(value, int | float) and key in _LENGTHS and not -1 <= value <= MAX_LENGTH:
        raise _ExcessError(f"has {key} {value:,} in its {part}; {MAX_LENGTH:,} is the most")


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps of a part, those of sequences in it included."""
    waiting = [(part, 0)]
    while waiting:
        step, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise _ExcessError(f"has sequences nested deeper than {MAX_NESTING} levels")
        if isinstance(step, dict):
            yield step
            for name in _STEPS:
                if isinstance(inner := step.get(name), list):
                    waiting += [(member, depth + 1) for member in reversed(inner)]


def _growth(step: dict[str, Any]) -> float:
    """Return a factor by which a step lengthens a text of some characters."""
    content = step.get("content")
    if step.get("type") != "Replace" or not isinstance(content, str):
        return 1.0
    pattern = _pattern(step)
    if isinstance(text := pattern.get("String"), str):
        return max(1.0, len(content) / len(text)) if text else 1.0 + len(content)
    return max(1.0, float(len(content)))


def _pattern(step: dict[str, Any]) -> dict[str, Any]:
    pattern = step.get("pattern")
    return pattern if isinstance(pattern, dict) else {}


def _texts(step: dict[str, Any]) -> Iterator[str]:
    yield from (value for value in _pattern(step).values() if isinstance(value, str))
    yield from (value for name in _INSERTED if isinstance(value := step.get(name), str))


def _is_linear_step(step: dict[str, Any]) -> bool:
    pattern = _pattern(step).get("Regex")
    return _is_one_of(step.get("type"), LINEAR_STEPS) and (pattern is None or _is_one_of(pattern, LINEAR_PATTERNS))


def _is_one_of(value: Any, names: frozenset[str]) -> bool:
    return isinstance(value, str) and value in names  # a list from a hostile file has no hash


def _is_linear(program: _Program, steps: list[list[dict[str, Any]]], longest: int) -> bool:
    model = program.model
    return (
        all(map(_is_linear_step, (step for part in steps for step in part)))
        and model.type in LINEAR_MODELS
        and model.dropout is None
        and (isinstance(model.vocab, dict) or longest <= LINEAR_TOKEN_CHARACTERS)
        and model.max_input_chars_per_word <= LINEAR_WORD_CHARACTERS
        and sum(token.lstrip or token.rstrip or token.single_word for token in program.added_tokens)
        <= MAX_STRIPPING_TOKENS
    )
