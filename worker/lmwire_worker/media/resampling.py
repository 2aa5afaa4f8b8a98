"""Resample sounds with mlx-audio."""

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .sounds import Sound

MAX_FACTOR: Final = 4000
"""Maximum factor up or down. The filter has 128 taps for each, and takes time and memory even for one sample."""
_MAX_DIVISOR: Final = 1000


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
    ratio = ratio_of(sound.rate, rate)
    made = source if ratio == 1 else _polyphase(source, ratio)
    samples = np.asarray(made, np.float32)[start - first * rate : stop - first * rate]
    return np.pad(samples, (0, stop - start - len(samples)), "edge" if len(samples) else "constant")


def _polyphase(samples: NDArray[np.float32], ratio: Fraction) -> NDArray[np.float32]:
    from mlx_audio import resample  # imports scipy, which takes most of a second

    return resample.resample_audio_array(samples, ratio.numerator, ratio.denominator, axis=0)


def ratio_of(source: int, target: int) -> Fraction:
    """Return the ratio of two rates, or one that differs by a two-thousandth at most and needs a shorter filter.

    Usual rates have their exact ratio. That of 48,001 to 16,000 would need a filter of six million taps.

    Args:
        source: Samples per second of a sound.
        target: Samples per second of the result.
    """
    divisor = min(_MAX_DIVISOR, max(MAX_FACTOR * target // max(source, target), 1))
    return Fraction(source, target).limit_denominator(divisor)
