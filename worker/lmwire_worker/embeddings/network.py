"""An embedding model of mlx-vlm: token ids to vectors."""

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
from .recipe import Recipe


class Input(NamedTuple):
    """What becomes one vector."""

    tokens: list[int]
    """At least one."""
    pixels: Any = None
    """An image, of Pillow, that stands where the tokens say; None in a text."""


class EmbeddingNetwork:
    """Makes vectors of texts.

    Args:
        folder: The model's.
        recipe: What its folder says.

    Raises:
        RequestError: bad_model, unsupported. Its weights have sizes, and are not read yet.
    """

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        self.batches = True
        """Whether rows may run together."""
        try:
            network = self._load(folder)
        except Exception as error:  # models raise whatever a wrong config leads to
            raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
        self.module: nn.Module = network
        self._recipe = recipe
        self._dense: list[nn.Module] = list(getattr(network, "dense", ()))
        if recipe.dense and not self._dense:
            problem = f"{folder} has layers behind its pooling, which mlx-vlm does not know for `{_type(network)}`"
            raise RequestError("unsupported", problem)
        network.pooling_config = recipe.pooling  # where mlx-vlm's models look for it
        if not 0 <= self.padding < self.vocab_size:
            raise RequestError("bad_model", f"{folder} pads with the token {self.padding}, which it does not have")

    @property
    def padding(self) -> int:
        """The token that fills up the shorter rows."""
        return getattr(self.module.config, "pad_token_id", None) or 0

    @property
    def vocab_size(self) -> int:
        """How many tokens it has."""
        config: Any = self.module.config
        return config.vocab_size

    @property
    def longest(self) -> int:
        """Tokens of a row at most."""
        config: Any = self.module.config
        positions = config.max_position_embeddings
        # RoBERTa's positions begin behind the one of its padding.
        return positions - config.pad_token_id - 1 if _type(self.module) == "xlm_roberta" else positions

    def embed(self, rows: Sequence[Input], *, normalize: Sequence[bool]) -> list["array[float]"]:
        """A vector for each row.

        Args:
            rows: The inputs.
            normalize: Whether each one's vector is scaled to length 1.

        Returns:
            Float32, of the model's width.
        """
        width = max(len(row.tokens) for row in rows)
        ids = mx.array([[*row.tokens, *[self.padding] * (width - len(row.tokens))] for row in rows])
        mask = mx.array([[1] * len(row.tokens) + [0] * (width - len(row.tokens)) for row in rows])
        output = self._run(ids, mask, rows)
        vectors = output.text_embeds.astype(mx.float32)
        if not self._recipe.normalized and not all(normalize):
            scaled = mx.array(list(normalize))[:, None]
            vectors = mx.where(scaled, vectors, self._pooled(output.last_hidden_state, mask))
        return [array("f", row.tobytes()) for row in np.array(vectors)]

    def _load(self, folder: Path) -> Any:
        return load_embedding_model(folder, lazy=True)

    def _run(self, ids: mx.array, mask: mx.array, rows: Sequence[Input]) -> Any:
        return self.module(ids, attention_mask=mask)

    def _pooled(self, hidden: mx.array, mask: mx.array) -> mx.array:
        assert self._recipe.pooling is not None
        pooled = pool_by_config(hidden, mask, self._recipe.pooling)
        for layer in self._dense:
            pooled = layer(pooled)
        return pooled.astype(mx.float32)


def _type(network: nn.Module) -> str:
    return str(getattr(network, "model_type", "")).replace("-", "_")
