"""Sounds: their limits, and their samples from a decoder process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .decoder_process import CPU_S, INSPECTION_BYTES, Declared, DecoderProcess, Question, no_data
from .media_error import MediaError
from .policy import MediaPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_BYTES: Final = 4
DECODER_BYTES: Final = 64 * 2**20
"""Memory that a decoder takes for a sound, in bytes: it sends the samples as it makes them."""
CPU_S_PER_SAMPLE: Final = 0.25e-6
"""Processor time for each sample beyond `CPU_S`, in seconds: some ten times that of an ordinary sound."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A decoded sound."""

    samples: "NDArray[np.float32]"
    """Samples of one channel, [n], from -1 to 1. Never empty."""
    rate: int
    """Samples per second, as in the file."""
    digest: bytes
    """SHA-256 of the file. Equal digests mean equal sounds."""
    resampled: object = None
    """The memory that the reader reserved for a resampled copy. It is free once nothing refers to this object."""

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate


def inspect_sound(
    decoder: DecoderProcess, content: bytes, policy: MediaPolicy, is_dropped: Callable[[], bool] = lambda: False
) -> Declared:
    """Return what a sound declares. Its samples are counted if its header does not have their number.

    Args:
        decoder: The process that reads it.
        content: The file.
        policy: The limits.
        is_dropped: Returns whether nobody needs the sound any more.

    Raises:
        MediaError: The file is not a supported sound, is damaged, or is too long.
    """
    limit = policy.max_samples
    fields: dict[str, Any] = {"subject": "inspect", "kind": "sound", "samples": limit}
    question = Question(fields, CPU_S + CPU_S_PER_SAMPLE * len(content), INSPECTION_BYTES)
    found = decoder.ask(question, content, no_data, is_dropped)
    rate, samples, most = int(found["rate"]), int(found["samples"]), int(found["most"])
    if samples > limit:
        raise _too_long(limit, rate)
    if samples <= 0:
        raise MediaError("is a sound without samples")
    most = max(samples, min(most, limit))
    fields = {"subject": "decode", "kind": "sound", "samples": most}
    question = Question(fields, CPU_S + CPU_S_PER_SAMPLE * most, INSPECTION_BYTES)
    return Declared("sound", samples, SAMPLE_BYTES * most, DECODER_BYTES, question, rate)


def decode_sound(
    decoder: DecoderProcess,
    content: bytes,
    declared: Declared,
    policy: MediaPolicy,
    is_dropped: Callable[[], bool] = lambda: False,
) -> "tuple[NDArray[np.float32], int]":
    """Decode a sound. Return its samples, and its rate in samples per second.

    Args:
        decoder: The process that decodes it.
        content: The file.
        declared: What `inspect_sound` found.
        policy: The limits.
        is_dropped: Returns whether nobody needs the sound any more.

    Raises:
        MediaError: The file is damaged, is too long, or exceeds what it declared.
    """
    most = declared.result_bytes // SAMPLE_BYTES
    longer = (
        _too_long(policy.max_samples, declared.rate)
        if most == policy.max_samples
        else MediaError(f"goes on after the {declared.units:,} samples that its header declares; encode it anew")
    )
    recording = _Recording(most, longer)
    rate = int(decoder.ask(declared.question, content, recording.buffer, is_dropped)["rate"])
    return recording.finish(), rate or declared.rate


class _Recording:
    """Receives samples in parts.

    Args:
        most: Maximum number of samples.
        longer: The error for one more.
    """

    def __init__(self, most: int, longer: MediaError) -> None:
        import numpy as np

        self._samples = np.empty(most, np.float32)  # memory that nothing is written into is not taken
        self._longer = longer
        self._checked = self._filled = 0

    def buffer(self, size: int) -> memoryview:
        """Return where the next part is to be written; see `decoder_process.Buffer`."""
        self._check()
        count, rest = divmod(size, SAMPLE_BYTES)
        if rest:
            raise ValueError("not whole samples")
        if self._filled + count > len(self._samples):
            raise self._longer
        self._filled += count
        part: Any = self._samples[self._checked : self._filled]
        return memoryview(part).cast("B")

    def finish(self) -> "NDArray[np.float32]":
        """Return the samples, which have come."""
        self._check()
        if not self._filled:
            raise MediaError("is a sound without samples")
        self._samples.resize(self._filled, refcheck=False)  # nothing refers to the parts any more
        return self._samples

    def _check(self) -> None:
        import numpy as np

        if not np.isfinite(self._samples[self._checked : self._filled]).all():
            raise MediaError("holds samples that are not numbers")
        self._checked = self._filled


def _too_long(limit: int, rate: int) -> MediaError:
    minutes = limit / max(rate, 1) / 60
    return MediaError(f"has more than {limit:,} samples, {minutes:.0f} minutes of it; send it in parts")
