"""Declarations of files, and the limits of decoding that follow from them."""

from dataclasses import dataclass
from typing import Final

from .decoder_process import Question
from .media_refs import MediaKind

CPU_S: Final = 10.0
"""Processor time that a decoder process may take for any file, in seconds, its start included."""
INSPECTION_BYTES: Final = 256 * 2**20
"""Memory that a decoder process may take for any file, in bytes: some copies of it, and tables."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A file's declaration of its size."""

    kind: MediaKind
    units: int
    """Pixels or samples, which have limits for each request."""
    result_bytes: int
    """Memory of the worker that it takes once it is decoded, in bytes."""
    work_bytes: int
    """Memory of the process that decodes it, in bytes."""
    question: Question
    """The question that decodes it."""
    rate: int = 0
    """Samples per second, of a sound."""


def no_data(size: int) -> memoryview:
    """Refuse pixels and samples in the answer to an inspection; see `decoder_process.Buffer`."""
    raise ValueError("an inspection has no data")
