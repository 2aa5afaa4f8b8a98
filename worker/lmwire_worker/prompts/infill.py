"""Prompts with a gap to fill, in the form that a model's family was trained on: fill in the middle (FIM).

A family is recognized by its tokens. See Bavarian et al., https://arxiv.org/abs/2207.14255, for the method, and section
3.2 of https://arxiv.org/abs/2409.12186 for the form of other files, which llama.cpp's server uses too.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from msgspec import Struct

from lmwire_protocol import ContextFile, Generate, RequestError

from ..models.tokenizer import Tokenizer
from .tokenization import Encoder

PREFIX_SHARE: Final = 3
"""Tokens of the prefix that stay for each token of the suffix, if both must be cut. llama.cpp's server uses 3, too."""
PROJECT_NAME: Final = "project\n"
"""The project's name before the files of a model that was trained with one; requests do not name it."""
FILE_NAME: Final = "filename\n"
"""The name of the file with the gap, after the other files; requests do not name it."""


class _GapTokens(NamedTuple):
    """The texts of a family's tokens around a gap.

    Args:
        prefix: Before the text that precedes the gap.
        suffix: Before the text that follows the gap.
        middle: Before the answer; None for a family whose prompt is the suffix and then the prefix.
    """

    prefix: str
    suffix: str
    middle: str | None


_GAPS: Final = (
    _GapTokens("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen2.5-Coder, CodeGemma, Granite 4
    _GapTokens("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, StarCoder2, Granite Code
    _GapTokens("▁<PRE>", "▁<SUF>", "▁<MID>"),  # CodeLlama
    _GapTokens("<\uff5cfim▁begin\uff5c>", "<\uff5cfim▁hole\uff5c>", "<\uff5cfim▁end\uff5c>"),  # DeepSeek-Coder
    _GapTokens("[PREFIX]", "[SUFFIX]", None),  # Codestral
)
_PROJECT: Final = ("<|repo_name|>", "<repo_name>", "<|reponame|>", "<reponame>")
_FILE: Final = ("<|file_sep|>", "<file_sep>", "<|file_separator|>", "<|filename|>", "<filename>")
_FURTHER_ENDS: Final = ("<|fim_pad|>", "<fim_pad>", "▁<EOT>", "<|EOT|>", "<|endoftext|>")
"""Further tokens after which the text of a gap does not go on."""


class InfillFormat(Struct, frozen=True):
    """The tokens with which a model fills gaps."""

    prefix: int
    suffix: int
    middle: int | None
    project: int | None
    """Before the project's name; None for a model without."""
    file: int | None
    """Before a file's name; None for a model without."""
    end_token_ids: frozenset[int]
    """Tokens that end an answer in a gap, besides the eos tokens."""
    names: tuple[str, ...]
    """The texts of all these tokens."""


def find_infill_format(tokenizer: Tokenizer, vocab_size: int) -> InfillFormat | None:
    """Return the format of a model's gaps; None if its vocabulary has no tokens for them.

    Args:
        tokenizer: The model's tokenizer.
        vocab_size: Number of tokens of the model. A tokenizer may have more.
    """
    known = _KnownTokens(tokenizer, vocab_size)
    for gap in _GAPS:
        prefix, suffix = known.id(gap.prefix), known.id(gap.suffix)
        middle = gap.middle and known.id(gap.middle)
        if prefix is None or suffix is None or (gap.middle and middle is None):
            continue
        project, file = known.first(_PROJECT), known.first(_FILE)
        own = [*filter(None, gap), *_PROJECT, *_FILE, *_FURTHER_ENDS]
        ids = {name: token for name in own if (token := known.id(name)) is not None}
        ends = frozenset(ids.values())
        return InfillFormat(prefix, suffix, known.id(gap.middle), project, file, ends, tuple(ids))
    return None


class _KnownTokens:
    """The ids of a model's tokens by their texts."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        self._tokenizer: Any = tokenizer
        self._vocab_size = vocab_size

    def id(self, text: str | None) -> int | None:
        """Return a token's id; None if the model does not have it."""
        token = None if text is None else self._tokenizer.convert_tokens_to_ids(text)
        if not isinstance(token, int) or not 0 <= token < self._vocab_size:
            return None
        # A tokenizer may return the id of its token for unknown texts.
        return token if self._tokenizer.convert_ids_to_tokens(token) == text else None

    def first(self, texts: Sequence[str]) -> int | None:
        """Return the id of the first of several tokens that the model has; None without any."""
        return next((token for text in texts if (token := self.id(text)) is not None), None)


class InfillPrompts:
    """Builds the prompts of a model that fills gaps. Any thread may call it.

    Args:
        infill: The model's format.
        encoder: The model's tokenizer, with its limits.
    """

    def __init__(self, infill: InfillFormat, encoder: Encoder) -> None:
        self._format = infill
        self._encoder = encoder

    @cached_property
    def _text(self) -> "PlainTextEncoder":
        return PlainTextEncoder(self._encoder, self._format.names)

    def build(self, request: Generate, suffix: str) -> list[int]:
        """Return the tokens of a prompt with a gap, cut to the context if the request allows it.

        Args:
            request: The request. Its prompt is text.
            suffix: The text after the gap.

        Raises:
            RequestError: invalid_request, context_overflow, out_of_memory.
        """
        assert isinstance(request.prompt, str)
        cuts = request.truncate != "none"
        files = self._files(request.context_files, cuts)
        before = self._text.encode(request.prompt, "prompt", leads=True, allow_overflow=cuts)
        after = self._text.encode(suffix, "suffix", allow_overflow=cuts)
        if cuts:
            room = self._encoder.context_len - max(1, request.max_tokens or 1) - len(self._join([], [], []))
            files, before, after = _cut(files, before, after, room)
        return self._join(files, before, after)

    def _join(self, files: list[list[int]], before: list[int], after: list[int]) -> list[int]:
        """Return a prompt's tokens.

        Args:
            files: The tokens of the other files, each with its name.
            before: The tokens before the gap.
            after: The tokens after the gap.
        """
        tokens, form = [*self._encoder.surrounding_tokens[0]], self._format
        for part in files:
            tokens += part
        prefix, suffix = [form.prefix, *before], [form.suffix, *after]
        if form.middle is None:
            return [*tokens, *suffix, *prefix]
        return [*tokens, *prefix, *suffix, form.middle]

    def _files(self, files: Sequence[ContextFile], allow_overflow: bool) -> list[list[int]]:
        """Return the tokens of the files before the gap, with the name of the file in which the gap is."""
        if not files:
            return []
        parts = [self._file(f"context_files[{at}]", file, allow_overflow) for at, file in enumerate(files)]
        if self._format.project is not None:
            parts.insert(0, [self._format.project, *self._text.encode(PROJECT_NAME, "")])
        if self._format.file is not None:
            parts.append([self._format.file, *self._text.encode(FILE_NAME, "")])
        return parts

    def _file(self, field: str, file: ContextFile, allow_overflow: bool) -> list[int]:
        text = f"{file.name}\n{file.text}\n"
        if self._format.file is not None:
            return [self._format.file, *self._text.encode(text, f"{field}.text", allow_overflow=allow_overflow)]
        return self._text.encode(f"--- {text}\n", f"{field}.text", allow_overflow=allow_overflow)


def _cut(
    files: list[list[int]], before: list[int], after: list[int], room: float
) -> tuple[list[list[int]], list[int], list[int]]:
    """Return the parts of a prompt that fit: without the first files, and then nearer to the gap.

    Args:
        files: The tokens of the other files.
        before: The tokens before the gap.
        after: The tokens after the gap.
        room: Number of tokens that fit.

    Raises:
        RequestError: context_overflow.
    """
    if room <= 0:
        raise RequestError("context_overflow", "the context leaves no room for text around the gap")
    used = len(before) + len(after)
    while files and sum(map(len, files)) + used > room:
        files = files[1:]
    if used <= room:
        return files, before, after
    suffix = int(min(len(after), max(room // (PREFIX_SHARE + 1), room - len(before))))
    prefix = int(min(len(before), room - suffix))
    return [], before[len(before) - prefix :], after[:suffix]


# Texts in which no name of a special token becomes that token.

MAX_NAMES: Final = 4096
"""Maximum number of special tokens' names in a text: each name costs a call of the tokenizer."""
_GUARD: Final = "☺"
"""Text before a piece, whose tokens are removed: without it, SentencePiece puts a space there. It is the character of
Code Llama's reference code, https://github.com/meta-llama/codellama/blob/main/llama/tokenizer.py."""

_MAX_BRANCHES: Final = 32
"""Branches of the pattern, one within another. Names of real models have some five."""


class PlainTextEncoder:
    """Tokenizes text such that it has no special token. Any thread may call it.

    Args:
        encoder: The model's tokenizer, with its limits.
        names: Further tokens that no text may have, besides those that the tokenizer calls special.
    """

    def __init__(self, encoder: Encoder, names: Iterable[str] = ()) -> None:
        self._encoder = encoder
        tokenizer: Any = encoder.tokenizer
        special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
        self._name = re.compile(_start_of([name for name in {*special, *names} if len(name) > 1]))

    def encode(self, text: str, field: str, *, leads: bool = False, allow_overflow: bool = False) -> list[int]:
        """Return a text's tokens.

        Args:
            text: The text.
            field: The field of the request that has it, for errors.
            leads: Tokenize it like the beginning of a text, before which some tokenizers put a space.
            allow_overflow: Tokenize a text even if it cannot fit into the context.

        Raises:
            RequestError: invalid_request, context_overflow, out_of_memory.
        """
        first, *others = self._split(text, field)
        tokens = self._whole(first, field, allow_overflow) if leads else self._inner(first, field, allow_overflow)
        for piece in others:
            tokens += self._inner(piece, field, allow_overflow)
        return tokens

    def _split(self, text: str, field: str) -> list[str]:
        """Return the pieces of a text, cut after the first character of each name."""
        pieces: list[str] = []
        start = 0
        while match := self._name.search(text, start):
            if len(pieces) == MAX_NAMES:
                problem = f"{field}: has more than {MAX_NAMES:,} names of special tokens; shorten the text"
                raise RequestError("invalid_request", problem, field=field)
            pieces.append(text[start : match.start() + 1])
            start = match.start() + 1
        return [*pieces, text[start:]]

    def _whole(self, text: str, field: str, allow_overflow: bool) -> list[int]:
        return (
            self._encoder.encode(text, field, add_special_tokens=False, allow_overflow=allow_overflow) if text else []
        )

    def _inner(self, text: str, field: str, allow_overflow: bool) -> list[int]:
        """Return the tokens of a text that follows another."""
        if not text or not self._adds_space:
            return self._whole(text, field, allow_overflow)
        return self._whole(_GUARD + text, field, allow_overflow)[self._guard_tokens :]

    @cached_property
    def _guard_tokens(self) -> int:
        return len(self._whole(_GUARD, "", allow_overflow=True))

    @cached_property
    def _adds_space(self) -> bool:
        """Return whether the tokenizer puts a space before a text."""
        return self._whole(_GUARD + "a", "", allow_overflow=True)[self._guard_tokens :] != self._whole("a", "", True)


def _start_of(names: Collection[str], branches: int = 0) -> str:
    """Return a pattern that matches at the start of each name, in time that does not grow with the number of names.

    It is a trie: `re` would compare each name at each character, and hold all threads of the process meanwhile.
    """
    if "" in names:
        return ""
    if branches == _MAX_BRANCHES:
        return f"(?:{'|'.join(map(re.escape, names))})"
    alternatives: list[str] = []
    for _, group in groupby(sorted(names), key=itemgetter(0)):
        alike = [*group]
        first, last = alike[0], alike[-1]  # what they share, all share, since they are sorted
        length = next(
            (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
        )
        alternatives.append(re.escape(first[:length]) + _start_of([name[length:] for name in alike], branches + 1))
    return f"(?:{'|'.join(alternatives)})" if alternatives else "(?!)"
