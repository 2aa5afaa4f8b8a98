"""Sounds as processors take them, and whether they take all of one."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..media import Sound
from ..media.problem import Problem

RATE: Final = 16_000
"""Samples a second: what models listen at, unless they say otherwise."""
SHORTEST_S: Final = 0.1
"""Seconds: what encoders make at least one step of."""
LONGEST_S: Final = 600
"""Seconds. The encoder takes a sound at once, and others wait for that."""
MASKS: Final = ("input_features_mask", "feature_attention_mask")
"""Where processors say how much of what they made is of the sound."""
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
    from ..speech.recording import Recording  # mlx-audio's resampling: images are shown without it

    rate = getattr(getattr(processor, "feature_extractor", None), "sampling_rate", RATE)
    recording = Recording(sound, rate)
    return recording.piece(0, recording.length)


def heard(inputs: dict[str, Any]) -> float:
    """How much of a sound is in what the processor made of it, in a count of its own."""
    return float(next(inputs[name].sum() for name in MASKS if name in inputs))


def check_whole(sound: Sound, inputs: dict[str, Any], pace: float) -> None:
    """Sees to it that a processor took all of a sound: some leave out what is beyond half a minute.

    Args:
        sound: The sound.
        inputs: What was made of it.
        pace: What is `heard` of a second.

    Raises:
        Problem: there is more.
    """
    if heard(inputs) < pace * (sound.seconds - SLACK_S):
        raise _too_long(sound, heard(inputs) / pace)


def _too_long(sound: Sound, limit: float) -> Problem:
    return Problem(f"is {sound.seconds:.1f} s long, and this model hears {limit:.0f} s; send it in parts")
