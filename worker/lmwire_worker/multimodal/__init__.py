"""Images and sounds for language models, with mlx-vlm: the one package that touches that library.

A model that sees, or hears, is served by the text lane. `loading` has mlx-vlm read the folder and `network` lets
mlx-lm's batches run what it read. `pictures` turns an image, or a sound that `hearing` brought to the model's rate,
into the tokens that stand for it: a picture either way. `layout` finds them in a prompt, and `prefill` processes a
prompt up to its last picture, after which the row is one like all others. `sight` is what the lane sees of all this,
and `trial` holds each sense against mlx-vlm's own when a model is loaded.
"""
