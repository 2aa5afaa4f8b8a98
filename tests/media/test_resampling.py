"""Resampling: its work depends on the sound's length, and not on what rate the sound claims."""

import numpy as np
import pytest

from lmwire_worker.media import Sound
from lmwire_worker.media.resampling import MAX_FACTOR, ratio_of, resample, resampled_length

USUAL = (
    8_000,
    11_025,
    12_000,
    16_000,
    22_050,
    24_000,
    32_000,
    44_100,
    48_000,
    88_200,
    96_000,
    176_400,
    192_000,
    384_000,
)


@pytest.mark.parametrize("target", [16_000, 24_000])
def test_no_rate_needs_a_filter_that_is_long(target: int) -> None:
    for source in range(8_000, 384_001, 501):
        ratio = ratio_of(source, target)
        assert max(ratio.numerator, ratio.denominator) <= MAX_FACTOR
        assert float(ratio) == pytest.approx(source / target, rel=1 / 1999)


@pytest.mark.parametrize("source", USUAL)
def test_usual_rates_are_exact(source: int) -> None:
    assert float(ratio_of(source, 16_000)) == source / 16_000


@pytest.mark.parametrize("rate", [8_001, 48_001, 383_999])
@pytest.mark.parametrize("length", [1, 100, 30_000])
def test_any_sound_has_the_length_that_was_promised(rate: int, length: int) -> None:
    sound = Sound(np.ones(length, np.float32), rate, b"")
    assert len(resample(sound, 16_000)) == resampled_length(sound, 16_000)
