"""The tokenizer of a model: tokens, special tokens and chat templates, on the tokenizers library."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Final, Literal

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

UNBOUNDED: Final = int(1e30)
"""Value of `model_max_length` for a model whose files name no limit, as in transformers."""
_SPACED: Final = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"),
    (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
"""Texts from which `clean_up_tokenization_spaces` removes a space, in order."""

ChatTemplates = str | dict[str, str] | None
"""A model's only chat template in Jinja, or several by name."""
DecoderKind = Literal["byte_level", "sentencepiece", "sentencepiece_stripped", "other"]


class Tokenizer:
    """A model's tokenizer. `encode` and `decode` are safe in any thread.

    Args:
        backend: The program of tokenizer.json. Its padding and truncation are turned off.
        special_tokens: The texts of special tokens by their names, such as `bos_token`.
        chat_template: The model's chat templates.
        renderer: A function in Python that renders conversations instead of a template in Jinja.
        renders_tokens: The renderer is the method of a tokenizer, and must be asked for text.
        eos_token_ids: Tokens that end a turn, besides the one of `special_tokens`.
        model_max_length: Length that the files claim for the model's context, in tokens.
        cleans_up_spaces: Remove the spaces before punctuation from decoded text.
        tool_parser_type: mlx-lm's name of the format of tool calls that the files name; None if they name none.
        response_template: The description of answers that transformers reads, as the files have it.
        kind: The way from the bytes of tokens to text; None to find it in the backend.
    """

    def __init__(
        self,
        backend: Backend | None,
        *,
        special_tokens: Mapping[str, str] | None = None,
        chat_template: ChatTemplates = None,
        renderer: Callable[..., Any] | None = None,
        renders_tokens: bool = False,
        eos_token_ids: Iterable[int] = (),
        model_max_length: int = UNBOUNDED,
        cleans_up_spaces: bool = False,
        tool_parser_type: str | None = None,
        response_template: Any = None,
        kind: DecoderKind | None = None,
    ) -> None:
        self.backend_tokenizer = backend
        """The program of tokenizer.json; None for a tokenizer with code of its own, which the host trusts."""
        if backend is not None:
            backend.no_padding()
            backend.no_truncation()
        self.special_tokens_map = dict(special_tokens or {})
        """The texts of special tokens by their names, such as `bos_token`."""
        self.chat_template = chat_template
        """The model's chat templates in Jinja; None without any."""
        self.renderer = renderer
        """A function in Python that renders conversations, and wins over `chat_template`; None for most models."""
        self.renders_tokens = renders_tokens
        """The renderer returns tokens unless it is called with `tokenize=False`."""
        self.model_max_length = model_max_length
        self._cleans_up_spaces = cleans_up_spaces
        self.tool_parser_type = tool_parser_type
        """mlx-lm's name of the format of tool calls that the files name; None if they name none."""
        self.response_template = response_template
        """The description of answers that transformers reads, as the files have it; None without."""
        self._kind: DecoderKind | None = kind
        self.eos_token_ids = set(eos_token_ids)
        """Tokens that end a turn."""
        if (end := self.eos_token_id) is not None:
            self.eos_token_ids.add(end)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return a text's tokens.

        Args:
            text: The text.
            add_special_tokens: Add the tokens that the tokenizer puts around a text.
        """
        (encoded,) = self._backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)
        return encoded.ids

    def decode(
        self,
        tokens: Sequence[int],
        *,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> str:
        """Return the text of tokens.

        Args:
            tokens: The tokens.
            skip_special_tokens: Leave out special tokens.
            clean_up_tokenization_spaces: Remove the spaces before punctuation; None for the files' own setting.
        """
        text = self._backend.decode(tokens, skip_special_tokens=skip_special_tokens)
        if self._cleans_up_spaces if clean_up_tokenization_spaces is None else clean_up_tokenization_spaces:
            for spaced, clean in _SPACED:
                text = text.replace(spaced, clean)
        return text

    def __len__(self) -> int:
        """Return the size of the vocabulary with added tokens."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    @property
    def base_vocab_size(self) -> int:
        """The size of the vocabulary without added tokens."""
        return self._backend.get_vocab_size(with_added_tokens=False)

    def get_vocab(self) -> dict[str, int]:
        """Return the tokens' ids by their texts, with added tokens. It takes 0.1 s for 150k tokens."""
        return self._backend.get_vocab(with_added_tokens=True)

    @property
    def vocabulary(self) -> Set[str]:
        """The texts of all tokens. A question about one token does not list them, unlike `get_vocab`."""
        return _Vocabulary(self)

    def has_token(self, text: str) -> bool:
        """Return whether a text is one token."""
        return self._token_id(text) is not None

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """Tokens outside the vocabulary proper, by their ids."""
        return self._backend.get_added_tokens_decoder()

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """Return a token's id. An unknown token has the id of `unk_token`, or None if there is none."""
        found = self._token_id(token)
        unknown = self.special_tokens_map.get("unk_token")
        return self._token_id(unknown) if found is None and unknown is not None else found

    def convert_ids_to_tokens(self, token: int) -> str | None:
        """Return a token as the vocabulary writes it; None for an id without a token."""
        return self._backend.id_to_token(token)

    @property
    def bos_token(self) -> str | None:
        """The token that begins a text."""
        return self.special_tokens_map.get("bos_token")

    @property
    def bos_token_id(self) -> int | None:
        """The id of `bos_token`."""
        return None if (token := self.bos_token) is None else self.convert_tokens_to_ids(token)

    @property
    def eos_token_id(self) -> int | None:
        """The id of the special token that ends a turn."""
        token = self.special_tokens_map.get("eos_token")
        return None if token is None else self.convert_tokens_to_ids(token)

    @property
    def has_chat_template(self) -> bool:
        """Return whether the model has a template of its own."""
        return self.chat_template is not None or self.renderer is not None

    def get_chat_template(self, *, tools: bool) -> str:
        """Return the template in Jinja.

        Args:
            tools: The request has tools. Some models have a separate template for these.

        Raises:
            ValueError: There are several, and none is for this request.
        """
        templates = self.chat_template or ""
        if isinstance(templates, str):
            return templates
        for name in ("tool_use", "default") if tools else ("default",):
            if name in templates:
                return templates[name]
        raise ValueError(f"none is the default; there are: {', '.join(sorted(templates))}")

    @cached_property
    def kind(self) -> DecoderKind:
        """The way from the bytes of tokens to text."""
        return self._kind or decoder_kind(self._backend.decoder)

    def _token_id(self, token: str) -> int | None:
        return self._backend.token_to_id(token)

    @property
    def _backend(self) -> Backend:
        assert self.backend_tokenizer is not None, "a subclass without a backend defines what reads it"
        return self.backend_tokenizer


def decoder_kind(decoder: Any) -> DecoderKind:
    """Return how a decoder of the tokenizers library makes text, by the rules of mlx-lm."""
    program = None if decoder is None else json.loads(decoder.__getstate__())
    if program is None or program.get("type") == "ByteLevel":
        return "other" if program is None else "byte_level"
    if program == {"type": "Sequence", "decoders": [*_PIECES, _STRIPPED]}:
        return "sentencepiece_stripped"
    return "sentencepiece" if program == {"type": "Sequence", "decoders": [*_PIECES]} else "other"


_PIECES: Final = (
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
)
_STRIPPED: Final = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
"""SentencePiece's decoder, as converted, without and with the step that drops a text's first space."""


def copy_chat_template(tokenizer: Tokenizer, processor: Any) -> None:
    """Give a tokenizer the processor's chat template if it has none: some models have it there alone.

    Args:
        tokenizer: Receives the template.
        processor: A processor of mlx-vlm.
    """
    template = getattr(processor, "chat_template", None)
    if template and not tokenizer.has_chat_template:
        tokenizer.chat_template = template


class _Vocabulary(Set[str]):
    """The texts of a tokenizer's tokens, looked up one by one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self._tokenizer.has_token(text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokenizer.get_vocab())

    def __len__(self) -> int:
        return len(self._tokenizer)
