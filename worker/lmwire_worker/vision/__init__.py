"""Images for language models, with mlx-vlm: the one package that touches that library.

A model that sees is served by the text lane. `loading` has mlx-vlm read the folder and `network` lets mlx-lm's batches
run what it read. `pictures` turns an image into the tokens that stand for it, `layout` finds them in a prompt, and
`prefill` processes a prompt up to its last image, after which the row is one like all others. `sight` is what the lane
sees of all this, and `trial` holds it against mlx-vlm's own when a model is loaded.
"""
