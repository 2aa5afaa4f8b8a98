"""Tokenizers of the library transformers, for folders whose tokenizer.json does not say everything."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase, TokenizersBackend

from .tokenizer import Tokenizer


class TransformersTokenizer(Tokenizer):
    """A tokenizer that transformers loads, and uses if it has code of its own.

    Args:
        inner: The tokenizer.
        **options: Further arguments of `Tokenizer`.
    """

    def __init__(self, inner: Any, **options: Any) -> None:
        self._inner = inner
        is_limitable = getattr(type(inner), "_encode_plus", None) is TokenizersBackend._encode_plus
        if type(inner).apply_chat_template is not PreTrainedTokenizerBase.apply_chat_template:
            options = {"renderer": inner.apply_chat_template, "renders_tokens": True, **options}
        super().__init__(
            inner.backend_tokenizer if is_limitable else None,
            special_tokens=inner.special_tokens_map,
            chat_template=getattr(inner, "chat_template", None),
            response_template=getattr(inner, "response_template", None),
            model_max_length=inner.model_max_length,
            **options,
        )

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return a text's tokens; see `Tokenizer.encode`."""
        if self.backend_tokenizer is not None and type(self._inner).encode is PreTrainedTokenizerBase.encode:
            return super().encode(text, add_special_tokens=add_special_tokens)
        return list(self._inner.encode(text, add_special_tokens=add_special_tokens))

    def decode(
        self,
        tokens: Sequence[int],
        *,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> str:
        """Return the text of tokens; see `Tokenizer.decode`."""
        return self._inner.decode(
            tokens,
            skip_special_tokens=skip_special_tokens,
            clean_up_tokenization_spaces=clean_up_tokenization_spaces,
        )

    def __len__(self) -> int:
        """Return the size of the vocabulary with added tokens."""
        return len(self._inner)

    @property
    def base_vocab_size(self) -> int:
        """The size of the vocabulary without added tokens."""
        return self._inner.vocab_size

    def get_vocab(self) -> dict[str, int]:
        """Return the tokens' ids by their texts, with added tokens."""
        return self._inner.get_vocab()

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """Tokens outside the vocabulary proper, by their ids."""
        return self._inner.added_tokens_decoder

    def convert_ids_to_tokens(self, token: int) -> str | None:
        """Return a token as the vocabulary writes it; None for an id without a token."""
        return self._inner.convert_ids_to_tokens(token)

    def _token_id(self, token: str) -> int | None:
        if isinstance(self._inner, TokenizersBackend):
            return self._inner.backend_tokenizer.token_to_id(token)
        return self._vocabulary.get(token)

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        return self._inner.get_vocab()
