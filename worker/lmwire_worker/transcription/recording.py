"""A recording at the rate that a model listens at."""

import math

import numpy as np
from mlx_audio.utils import resample_audio
from numpy.typing import NDArray

from ..media import Sound


class Recording:
    """Resamples what is asked for, and no more: hours of sound at once would hold up everyone else.

    Args:
        sound: As it was decoded.
        rate: Samples a second that are wanted.
    """

    def __init__(self, sound: Sound, rate: int) -> None:
        self._sound = sound
        self.rate = rate
        self.duration_s = len(sound.samples) / sound.rate
        self.length = math.ceil(self.duration_s * rate)
        """Samples at the wanted rate."""

    def piece(self, start: int, stop: int) -> NDArray[np.float32]:
        """Samples from `start` up to `stop`, or to the end: float32, [n]."""
        stop = min(stop, self.length)
        first = max(start // self.rate - 1, 0)  # whole seconds are whole samples at any rate; one more for the filter
        last = stop // self.rate + 2
        source = self._sound.samples[first * self._sound.rate : last * self._sound.rate]
        samples = np.asarray(resample_audio(source, self._sound.rate, self.rate, axis=0), np.float32)
        return samples[start - first * self.rate : stop - first * self.rate]
