"""Text generation with mlx-lm.

The package itself imports nothing: a worker sends its `hello` before it imports a model library. Its modules import no
library of images and sounds: a multimodal model's loader passes them what reads and computes these.
"""
