"""Sounds as processors take them, and whether they take all of one."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ..media import Sound
from ..media.media_error import Problem

if TYPE_CHECKING:
    from .media_input import Picture

RATE: Final = 16_000
"""Samples a second: what models listen at, unless they say otherwise."""
SHORTEST_S: Final = 0.1
"""Seconds: what encoders make at least one step of."""
LONGEST_S: Final = 600
"""Seconds. The encoder takes a sound at once, and others wait for that."""
MASKS: Final = ("input_features_mask", "feature_attention_mask")
"""Where processors say which pieces of what they made are of the sound."""
SLACK_S: Final = 0.25
"""Seconds of a sound that may be missing: processors round, and leave out what fills no window."""


def samples_of(sound: Sound, processor: Any) -> NDArray[np.float32]:
    """A sound at the rate that a processor takes.

    Raises:
        Problem: it is longer or shorter than sounds may be here.
    """
    if sound.seconds < SHORTEST_S:
        raise Problem(f"is {sound.seconds:.3f} s long, and a model hears {SHORTEST_S} s or more; leave it out")
    if sound.seconds > LONGEST_S:
        raise _too_long(sound, LONGEST_S)
    from ..transcription.recording import Recording  # mlx-audio's resampling: images are shown without it

    rate = getattr(getattr(processor, "feature_extractor", None), "sampling_rate", RATE)
    recording = Recording(sound, rate)
    return recording.piece(0, recording.length)


def counts(picture: "Picture") -> NDArray[np.float64]:
    """How much of a sound is in what a processor made of it: in pieces that it counts itself, and in tokens."""
    masks = [value for name, value in (picture.inputs or {}).items() if name in MASKS]
    return np.array([float(sum(mask.sum() for mask in masks)), picture.tokens.count(picture.mark)])


def pace(shorter: "Picture", longer: "Picture", seconds: float) -> NDArray[np.float64]:
    """What a second adds to the counts: 0 where they are the same for all sounds.

    Args:
        shorter: Of a sound.
        longer: Of a longer one.
        seconds: By how much.

    Raises:
        ValueError: nothing is added, so it could not be told whether all of a sound is heard.
    """
    added = (counts(longer) - counts(shorter)) / seconds
    if not added.any():
        raise ValueError("it does not say how much it takes of a sound")
    return added


def check_whole(sound: Sound, picture: "Picture", pace: NDArray[np.float64]) -> None:
    """Sees to it that a processor took all of a sound: some leave out what is beyond half a minute.

    Args:
        sound: The sound.
        picture: What was made of it.
        pace: What a second adds to its counts.

    Raises:
        Problem: there is more.
    """
    heard_s = min((count / added for count, added in zip(counts(picture), pace, strict=True) if added), default=np.inf)
    if heard_s < sound.seconds - SLACK_S:
        raise _too_long(sound, heard_s)


def _too_long(sound: Sound, limit: float) -> Problem:
    return Problem(f"is {sound.seconds:.1f} s long, and this model hears {limit:.0f} s; send it in parts")
