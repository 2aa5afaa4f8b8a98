"""A recording at a model's sample rate, resampled chunk by chunk beside the engine."""

import threading
import weakref
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..media import Sound
from ..media.resampling import resample, resampled_length

CHUNK_S: Final = 40
"""Seconds resampled at a time. The first chunk holds all that a model's first window needs."""


class Recording:
    """A recording's samples at one rate.

    A thread calls `resample_chunk` until it returns False. `samples` waits for the chunks that it needs, so a
    transcription starts after the first one: an hour of sound takes many seconds to resample.

    Args:
        sound: The decoded sound.
        sample_rate: Samples per second of the result.
    """

    def __init__(self, sound: Sound, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self.duration_s = sound.seconds
        self.length = resampled_length(sound, sample_rate)
        """Number of samples at the new rate."""
        is_resampled = sound.rate == sample_rate
        self._sound: Sound | None = None if is_resampled else sound
        self._memory = sound.resampled
        """The reader's memory for the samples, which is free again when this object is dropped."""
        self._samples = sound.samples if is_resampled else np.empty(self.length, np.float32)
        self._ready = self.length if is_resampled else 0
        """Number of samples that are resampled."""
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def resample_chunk(self) -> bool:
        """Resample the next chunk. Return whether more remain."""
        if self._sound is None:
            return False
        start, stop = self._ready, min(self._ready + CHUNK_S * self.sample_rate, self.length)
        try:
            self._samples[start:stop] = resample(self._sound, self.sample_rate, start, stop)
        except BaseException as error:  # `samples` raises it, for the request
            self._error = error.with_traceback(None)
        if stop == self.length or self._error is not None:
            self._sound = None
        with self._changed:
            self._ready = stop
            self._changed.notify_all()
        return self._sound is not None

    def samples(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return the samples from `start` up to `stop` or the end: float32, [n]. Wait until they are resampled.

        Args:
            start: Index of the first sample.
            stop: Index after the last sample.

        Raises:
            Exception: The error of the resampling.
        """
        stop = min(stop, self.length)
        with self._changed:
            self._changed.wait_for(lambda: self._ready >= stop or self._error is not None)
        if self._error is not None:
            raise self._error
        return self._samples[start:stop]


def open_recording(sound: Sound, sample_rate: int, executor: Executor) -> Recording:
    """Return a recording whose first chunk is resampled. The executor resamples the others, unless it is dropped.

    Args:
        sound: The decoded sound.
        sample_rate: Samples per second of the recording.
        executor: Runs the chunks of all recordings in turns.
    """
    recording = Recording(sound, sample_rate)
    _resample_next(weakref.ref(recording), executor)
    return recording


def _resample_next(reference: "weakref.ref[Recording]", executor: Executor) -> None:
    recording = reference()
    if recording is not None and recording.resample_chunk():
        with suppress(RuntimeError):  # the runner was closed
            executor.submit(_resample_next, reference, executor)
