"""Sounds in the form that processors take, and the check that a processor uses all of a sound."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..media import Sound
from ..media.media_error import MediaError
from ..media.resampling import resample
from .media_input import MediaInput

DEFAULT_SAMPLE_RATE: Final = 16_000
"""Samples per second, for processors that name no rate."""
MIN_SOUND_S: Final = 0.1
"""Shortest sound, in seconds. Encoders make at least one step of it."""
MAX_SOUND_S: Final = 600
"""Longest sound, in seconds. The encoder takes a sound at once, and other requests wait meanwhile."""
MASK_NAMES: Final = ("input_features_mask", "feature_attention_mask")
"""Processor outputs that mark which features belong to the sound."""
TOLERANCE_S: Final = 0.25
"""Seconds of a sound that a processor may drop: it rounds, and omits an incomplete last window."""


def resample_sound(sound: Sound, processor: Any) -> NDArray[np.float32]:
    """Return a sound's samples at the rate that a processor takes.

    Args:
        sound: The sound.
        processor: mlx-vlm's processor.

    Raises:
        MediaError: The sound is too long or too short.
    """
    if sound.seconds < MIN_SOUND_S:
        raise MediaError(f"is {sound.seconds:.3f} s long, and a model hears {MIN_SOUND_S} s or more; leave it out")
    if sound.seconds > MAX_SOUND_S:
        raise _too_long(sound, MAX_SOUND_S)
    return resample(sound, getattr(getattr(processor, "feature_extractor", None), "sampling_rate", DEFAULT_SAMPLE_RATE))


def count_features(media_input: MediaInput) -> NDArray[np.float64]:
    """Return the amounts that a processor made of a sound: features by its own mask, and tokens."""
    masks = [value for name, value in (media_input.inputs or {}).items() if name in MASK_NAMES]
    tokens = media_input.tokens.count(media_input.placeholder_token)
    return np.array([float(sum(mask.sum() for mask in masks)), tokens])


def features_per_second(shorter: MediaInput, longer: MediaInput, seconds: float) -> NDArray[np.float64]:
    """Return what a second of sound adds to each of the counts; 0 where a count is constant.

    Args:
        shorter: Input of a sound.
        longer: Input of a longer sound.
        seconds: Difference in length, in seconds.

    Raises:
        ValueError: All counts are constant, so nothing shows whether a sound was used completely.
    """
    added = (count_features(longer) - count_features(shorter)) / seconds
    if not added.any():
        raise ValueError("it does not say how much it takes of a sound")
    return added


def check_complete(sound: Sound, media_input: MediaInput, per_second: NDArray[np.float64]) -> None:
    """Check that a processor used all of a sound: some cut it after half a minute.

    Args:
        sound: The sound.
        media_input: Its input.
        per_second: What a second adds to the counts of `count_features`.

    Raises:
        MediaError: The sound is longer than what was used.
    """
    counts = count_features(media_input)
    used_s = min((count / added for count, added in zip(counts, per_second, strict=True) if added), default=np.inf)
    if used_s < sound.seconds - TOLERANCE_S:
        raise _too_long(sound, used_s)


def _too_long(sound: Sound, limit: float) -> MediaError:
    return MediaError(f"is {sound.seconds:.1f} s long, and this model hears {limit:.0f} s; send it in parts")
