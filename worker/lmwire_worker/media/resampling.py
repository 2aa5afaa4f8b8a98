"""Resample sounds with mlx-audio. Importing this module imports mlx-audio, so do it only where it is needed."""

import math

import numpy as np
from mlx_audio import resample as polyphase
from numpy.typing import NDArray

from .sounds import Sound


def resampled_length(sound: Sound, rate: int) -> int:
    """Return the number of samples of a sound at another rate, in samples per second."""
    return math.ceil(len(sound.samples) / sound.rate * rate)


def resample(sound: Sound, rate: int, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
    """Return samples of a sound at another rate: float32, [n].

    Parts that are resampled one by one join to the whole: each is computed with up to a second on either side, which
    is more than the filter's length.

    Args:
        sound: The sound.
        rate: Samples per second of the result.
        start: First sample of the result, at the new rate.
        stop: Sample at which the result ends, at the new rate; None for the end of the sound.
    """
    length = resampled_length(sound, rate)
    stop = length if stop is None else min(stop, length)
    first = max(start // rate - 1, 0)  # whole seconds are whole samples at any rate
    last = stop // rate + 2
    source = sound.samples[first * sound.rate : last * sound.rate]
    samples = np.asarray(polyphase.resample_audio_array(source, sound.rate, rate, axis=0), np.float32)
    return samples[start - first * rate : stop - first * rate]
