"""Text generation with mlx-lm.

The package itself imports nothing: a worker sends its `hello` before it imports a model library.
"""
