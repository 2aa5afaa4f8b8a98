"""From a text that a request gives to the tokens that a network takes."""

from functools import cached_property

from mlx_lm.tokenizer_utils import TokenizerWrapper

from ..prompts.token_lower_bound import TokenLowerBound
from .recipe import Recipe


class TextInputs:
    """The inputs of a model that makes vectors of texts. May be used from any thread.

    Args:
        tokenizer: The model's own.
        recipe: What its folder says.
        vocab_size: How many tokens the network has; a tokenizer may have others.
    """

    def __init__(self, tokenizer: TokenizerWrapper, recipe: Recipe, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._recipe = recipe
        self._vocab_size = vocab_size
        tokenizer.encode(
            ""
        )  # the first call turns off truncation and padding, which must not happen beside another call

    def render(self, text: str) -> str:
        """A text with what belongs to it."""
        return self._cased(self._recipe.prompt + text)

    def tokens(self, text: str) -> list[int]:
        """Those of a text with what belongs to it. May be none.

        Raises:
            ValueError: it cannot be an input; says why.
        """
        return self._known(self._tokenizer.encode(self.render(text)))

    def least(self, text: str) -> int:
        """Return a number of tokens that a text certainly has, without tokenizing it."""
        return self._least.tokens(self.render(text))

    @cached_property
    def _least(self) -> TokenLowerBound:
        return TokenLowerBound(self._tokenizer)

    def _known(self, tokens: list[int]) -> list[int]:
        """Return tokens that are all in the network's table: it reads beyond its memory for others."""
        if max(tokens, default=0) >= self._vocab_size:
            raise ValueError(f"holds a token that the tokenizer knows and this model, of {self._vocab_size}, does not")
        return tokens

    def _cased(self, text: str) -> str:
        return text.lower() if self._recipe.lower_case else text
