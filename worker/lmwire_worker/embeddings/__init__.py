"""Embeddings of texts and images, through mlx-vlm.

`recipe` reads from a folder how its model makes vectors, and `loader` opens the model. `inputs` tokenizes texts, and
`network` computes their vectors; `qwen3_vl` does both for models that take images. `runner` serves requests.
"""
