"""Images and sounds of noise, to try models with: every part of them counts."""

from typing import Final

import numpy as np
import PIL.Image

from .images import Image
from .sounds import Sound

SOUND_S: Final = 1.28
"""Length of a sound, in seconds: whole windows for every model. mlx-vlm takes an incomplete one's padding for sound."""
SOUND_RATE: Final = 16_000
"""Samples per second of a sound."""


def noise_image(seed: int = 0, width: int = 96, height: int = 64) -> Image:
    """Return an image of noise.

    Args:
        seed: Fixes the noise.
        width: In pixels.
        height: In pixels.
    """
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return Image(PIL.Image.fromarray(noise), seed.to_bytes(32, "little"))


def noise_sound(seed: int = 0) -> Sound:
    """Return a sound of noise, which the seed fixes."""
    noise = np.random.default_rng(seed).normal(0, 0.1, round(SOUND_S * SOUND_RATE)).astype(np.float32)
    return Sound(noise, SOUND_RATE, b"sound" + seed.to_bytes(27, "little"))
