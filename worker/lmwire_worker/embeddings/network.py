"""Compute vectors of tokens with an embedding model of mlx-vlm."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx_vlm.embedding_loader import load_embedding_model
from mlx_vlm.models.pooling import pool_by_config

from lmwire_protocol import RequestError

from ..models.weights import summarize_exception
from .recipe import EmbeddingRecipe


class EmbeddingInput(NamedTuple):
    """The input of one vector."""

    tokens: list[int]
    """The tokens; at least one."""
    pixels: Any = None
    """The Pillow image of the placeholder tokens; None for a text."""


class EmbeddingNetwork:
    """A text embedding model. Its weights have sizes, and are read later.

    Args:
        folder: The model's folder.
        recipe: How the model makes vectors.

    Raises:
        RequestError: bad_model, unsupported.
    """

    def __init__(self, folder: Path, recipe: EmbeddingRecipe) -> None:
        self.supports_batching = True
        """True if rows may run together."""
        try:
            network = self._load(folder)
        except BaseException as error:  # models raise whatever a wrong config leads to
            raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
        self.module: nn.Module = network
        self._recipe = recipe
        self._dense: list[nn.Module] = list(getattr(network, "dense", ()))
        if recipe.dense and not self._dense:
            problem = f"{folder} has layers after its pooling, which mlx-vlm does not support for `{_type(network)}`"
            raise RequestError("unsupported", problem)
        network.pooling_config = recipe.pooling  # where mlx-vlm's models look for it
        if not 0 <= self.padding < self.vocab_size:
            raise RequestError("bad_model", f"{folder} pads with the token {self.padding}, which it does not have")

    @property
    def padding(self) -> int:
        """The padding token."""
        return getattr(self.module.config, "pad_token_id", None) or 0

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        config: Any = self.module.config
        return config.vocab_size

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens of a row."""
        config: Any = self.module.config
        positions = config.max_position_embeddings
        # RoBERTa's positions begin after that of its padding token.
        return positions - config.pad_token_id - 1 if _type(self.module) == "xlm_roberta" else positions

    def embed(self, rows: Sequence[EmbeddingInput], *, normalize: Sequence[bool]) -> list["array[float]"]:
        """Return a vector for each row.

        Args:
            rows: The inputs.
            normalize: For each row, True to scale its vector to length 1.

        Returns:
            Vectors in float32, of the model's width.
        """
        width = max(len(row.tokens) for row in rows)
        ids = mx.array([[*row.tokens, *[self.padding] * (width - len(row.tokens))] for row in rows])
        mask = mx.array([[1] * len(row.tokens) + [0] * (width - len(row.tokens)) for row in rows])
        output = self.run(ids, mask, rows)
        vectors = output.text_embeds.astype(mx.float32)
        if not self._recipe.normalized and not all(normalize):
            scaled = mx.array(list(normalize))[:, None]
            vectors = mx.where(scaled, vectors, self._pooled(output.last_hidden_state, mask))
        return [array("f", row.tobytes()) for row in np.array(vectors)]

    def _load(self, folder: Path) -> Any:
        return load_embedding_model(folder, lazy=True)

    def run(self, ids: mx.array, mask: mx.array, rows: Sequence[EmbeddingInput]) -> Any:
        """Return the model's output for padded rows."""
        return self.module(ids, attention_mask=mask)

    def _pooled(self, hidden: mx.array, mask: mx.array) -> mx.array:
        assert self._recipe.pooling is not None
        pooled = pool_by_config(hidden, mask, self._recipe.pooling)
        for layer in self._dense:
            pooled = layer(pooled)
        return pooled.astype(mx.float32)


def _type(network: nn.Module) -> str:
    return str(getattr(network, "model_type", "")).replace("-", "_")
