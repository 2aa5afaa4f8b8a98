"""Vectors of texts, with mlx-vlm.

Importing this costs nothing: what knows a model library is imported when such a model is loaded. `recipe` reads off a
folder how its model makes vectors, `network` does it, and `lane` serves requests with it.
"""

from typing import TYPE_CHECKING

from .recipe import is_embedding_model

if TYPE_CHECKING:
    from .loading import open_embeddings

__all__ = ["is_embedding_model", "open_embeddings"]


def __getattr__(name: str) -> object:
    if name == "open_embeddings":
        from .loading import open_embeddings

        return open_embeddings
    raise AttributeError(name)
