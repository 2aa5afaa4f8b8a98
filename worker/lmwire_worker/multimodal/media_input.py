"""An image or a sound in the form that one model takes."""

from typing import Any

from msgspec import Struct


class Features(Struct, frozen=True):
    """The encoder's output for one media input, in the order of its tokens."""

    embeds: Any
    """Embeddings, [1, tokens, width]."""
    deepstack: list[Any]
    """Features that are added after each of the first layers, [image tokens, width] each. Empty for most models."""

    @property
    def nbytes(self) -> int:
        """Size of all arrays, in bytes."""
        return self.embeds.nbytes + sum(layer.nbytes for layer in self.deepstack)


class MediaInput:
    """An image or a sound as one model takes it.

    Args:
        digest: SHA-256 of the file.
        text: The text that represents it in a prompt.
        tokens: Tokens of that text, from the first placeholder token to the last.
        inputs: The processor's output, for the encoder.
        token_bytes: Bytes of features for each token; 0 if they are unknown.
    """

    def __init__(
        self, digest: bytes, text: str, tokens: list[int], inputs: dict[str, Any], token_bytes: int = 0
    ) -> None:
        self.digest = digest
        self.text = text
        self.tokens = tokens
        self.grid: Any = inputs.get("image_grid_thw")
        """Patches in time, down and across, int [1, 3]; None for models without such a grid."""
        self.inputs: dict[str, Any] | None = inputs
        """The encoder's inputs; None once it is encoded."""
        self.features: Features | None = None
        """The encoder's output; None until it is encoded."""
        self.nbytes: int = max(sum(getattr(value, "nbytes", 0) for value in inputs.values()), token_bytes * len(tokens))
        """Bytes that it takes now or once it is encoded, whichever is more. So it never grows."""
        self.last_used = 0.0
        """Monotonic time at which a request last used it; the feature cache sets it."""

    @property
    def placeholder_token(self) -> int:
        """The token that stands for a part of it."""
        return self.tokens[0]

    def set_features(self, features: Features) -> None:
        """Replace the encoder's inputs by its output."""
        self.features, self.inputs = features, None
        self.nbytes = features.nbytes
