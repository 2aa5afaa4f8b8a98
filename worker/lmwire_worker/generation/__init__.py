"""Text generation with mlx-lm.

Importing this costs nothing: a worker answers its host's hello first, and imports the library behind it.
"""

from .loader import TextModelLoader

__all__ = ["TextModelLoader"]
