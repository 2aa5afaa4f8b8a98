"""Vectors of texts and images, with mlx-vlm.

`recipe` reads off a folder how its model makes vectors, `inputs` turns what requests give into tokens, `network` makes
vectors of them, `seeing` does both for models that take images, and `lane` serves requests with it.
"""
