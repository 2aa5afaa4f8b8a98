"""Decode AAC, alone or in an MP4 file (M4A), with FFmpeg in a process of its own.

The process has limits of time and memory, and a crash ends only the process.
"""

import os
import subprocess
import sys
from array import array
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lmwire_protocol.extras import not_installed

from .media_error import MediaError

DECODER: Final = Path(__file__).with_name("aac_decoder.py")
CPU_SECONDS: Final = 600
"""Maximum processor time of one sound, in seconds. Two hours of sound take a fraction of it."""
MEMORY_BYTES: Final = 2**30
"""Maximum address space of the process, in bytes. macOS does not enforce it."""
_RATE_BYTES: Final = 4
_EXIT_OTHER_CODEC: Final = 2
_EXIT_NO_LIBRARY: Final = 3
_EXIT_LIMIT: Final = 4


def container_format(content: bytes) -> str | None:
    """Return FFmpeg's name of the format of a file that may hold AAC; None for other files."""
    if content[4:8] == b"ftyp":
        return "mov"
    is_adts = len(content) > 1 and content[0] == 0xFF and content[1] & 0xF6 == 0xF0
    return "aac" if is_adts else None


def decode_aac(content: bytes, container: str, limit: int) -> "tuple[array[float], int]":
    """Return a file's samples, with all channels mixed into one, and its rate in samples per second.

    Args:
        content: The file.
        container: The format, from `container_format`.
        limit: Number of samples after which decoding stops. The result may have slightly more.

    Raises:
        MediaError: The file is corrupted, has another codec or exceeds the limits, or PyAV is not installed.
    """
    if not find_spec("av"):
        raise _missing_library()
    command = [sys.executable, "-P", str(DECODER), container, str(limit), str(CPU_SECONDS), str(MEMORY_BYTES)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each thread would take address space
    done = subprocess.run(
        command, input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, check=False
    )
    if done.returncode == _EXIT_OTHER_CODEC:
        raise MediaError("has a sound in another format than AAC or ALAC; send one of these, WAV, MP3 or FLAC")
    if done.returncode == _EXIT_NO_LIBRARY:
        raise _missing_library()
    if done.returncode < 0 or done.returncode == _EXIT_LIMIT:
        raise MediaError("takes more time or memory to decode than is allowed; send it in parts, or as WAV or FLAC")
    if done.returncode:
        raise MediaError("is a damaged sound")
    samples = array("f")
    samples.frombytes(memoryview(done.stdout)[_RATE_BYTES:])
    return samples, int.from_bytes(done.stdout[:_RATE_BYTES], "little")


def _missing_library() -> MediaError:
    return MediaError(not_installed("PyAV", "aac", purpose="reads M4A and AAC"), "unsupported")
