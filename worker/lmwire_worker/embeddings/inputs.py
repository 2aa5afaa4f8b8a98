"""Turn the texts of requests into tokens."""

from functools import cached_property

from ..models.tokenizer import Tokenizer
from ..prompts.token_lower_bound import TokenLowerBound
from ..prompts.tokenization import Encoder, check_token_ids
from .recipe import EmbeddingRecipe


class InputTokenizer:
    """The tokenizer of a text embedding model. May be used from any thread.

    Args:
        tokenizer: The model's tokenizer.
        recipe: How the model makes vectors.
        vocab_size: Number of tokens that the network has. A tokenizer may have others.
    """

    def __init__(self, tokenizer: Tokenizer, recipe: EmbeddingRecipe, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._recipe = recipe
        self._vocab_size = vocab_size
        self._encoder = Encoder(tokenizer)

    def render(self, text: str) -> str:
        """Return a text with the recipe's prompt."""
        return self._cased(self._recipe.prompt + text)

    @property
    def is_quick(self) -> bool:
        """Return whether short texts certainly take no time, so that they need no thread."""
        return self._encoder.is_quick

    def tokens(self, text: str, field: str) -> list[int]:
        """Return the tokens of a text with the recipe's prompt. May be empty.

        Args:
            text: The text.
            field: The field of the request that has it, for errors.

        Raises:
            ValueError: The text cannot be an input.
            RequestError: invalid_request: the tokenizer fails on it.
        """
        return self._encode(self.render(text), field)

    def check_tokens(self, tokens: list[int], field: str) -> list[int]:
        """Return the tokens of a request that has them instead of a text.

        Args:
            tokens: The tokens; at least one.
            field: The field of the request that has them, for errors.

        Raises:
            ValueError: The tokens cannot be an input.
            RequestError: invalid_request: the model lacks one of them.
        """
        return check_token_ids(tokens, self._vocab_size, field)

    def min_tokens(self, text: str) -> int:
        """Return a lower bound of a text's tokens, without tokenizing it."""
        return self._least.tokens(self.render(text))

    @cached_property
    def _least(self) -> TokenLowerBound:
        return TokenLowerBound(self._tokenizer)

    def _encode(self, text: str, field: str, *, add_special_tokens: bool = True) -> list[int]:
        return self._known(
            self._encoder.encode(text, field, add_special_tokens=add_special_tokens, allow_overflow=True)
        )

    def _known(self, tokens: list[int]) -> list[int]:
        """Return the tokens if the network has all of them. It would read beyond its memory for others."""
        if max(tokens, default=0) >= self._vocab_size:
            raise ValueError(f"holds a token that the tokenizer knows and this model, of {self._vocab_size}, does not")
        return tokens

    def _cased(self, text: str) -> str:
        return text.lower() if self._recipe.lower_case else text
