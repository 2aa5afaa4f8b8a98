"""Vectors of texts, with mlx-vlm.

`recipe` reads off a folder how its model makes vectors, `network` does it, and `lane` serves requests with it.
"""
