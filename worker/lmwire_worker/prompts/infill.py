"""Prompts with a gap to fill, in the form that a model's family was trained on: fill in the middle (FIM).

A family is recognized by its tokens. See Bavarian et al., https://arxiv.org/abs/2207.14255, for the method, and section
3.2 of https://arxiv.org/abs/2409.12186 for the form of other files, which llama.cpp's server uses too.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec import Struct

from lmwire_protocol import ContextFile, Generate, RequestError

from ..models.tokenizer import Tokenizer
from .plain_text import PlainTextEncoder
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
    def _text(self) -> PlainTextEncoder:
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
