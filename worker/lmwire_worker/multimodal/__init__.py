"""Images and sounds for language models, through mlx-vlm.

The generation runner serves a model that takes images or sounds. These modules give it what such a model needs:

- `loader` opens the model, and `vision_model` reads its folder with mlx-vlm.
- `network` adapts mlx-vlm's model to the batch.
- `input_builder` turns an image or a sound into a `media_input`: placeholder tokens and the encoder's inputs.
  `feature_cache` keeps them for later requests.
- `placeholders` finds the media inputs in a prompt. `prefill` computes a prompt up to its last media input; after
  that, its row is like all others.
- `processor` is the interface to the runner.
- `parity_check` compares the model with mlx-vlm's own results when it is loaded.
"""
