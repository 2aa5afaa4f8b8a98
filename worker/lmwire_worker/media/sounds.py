"""Decodes sounds, into one channel."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .policy import Policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Sound:
    """A decoded sound."""

    samples: "NDArray[np.float32]"
    """[n], n above 0: one channel, -1 to 1."""
    rate: int
    """Samples a second: the file's own."""
    digest: bytes
    """SHA-256 of the file: equal digests are equal sounds."""


def decode_sound(content: bytes, policy: Policy) -> Sound:
    """Decodes a file. Raises Problem."""
    raise NotImplementedError
