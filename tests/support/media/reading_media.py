"""Helpers that read media as a model runner does, and create the files to read."""

import base64
import io
import struct
import threading
import wave
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from lmwire_protocol import Media, RequestError
from lmwire_worker.media import Image, MediaPolicy, MediaReader, MediaRef, Sound
from lmwire_worker.media.media_refs import MediaKind
from lmwire_worker.media.reader import Medium
from support.process.worker_process import SECONDS

FIELD = "messages[1].content[0].media"
TONES = Path(__file__).parents[2] / "media" / "sounds"
"""Folder of files that each hold half a second of a 440 Hz tone at 16 kHz, with a peak of 0.5."""


shared_reader = lru_cache(maxsize=4)(MediaReader)
"""Returns a reader that several tests use, since each has decoder processes of its own, which take time to start."""


def read_all(media: list[tuple[MediaKind, Media]], policy: MediaPolicy | None = None) -> list[Medium]:
    """Read the media of one request, and return them."""
    there = threading.Event()
    refs = [MediaRef(FIELD, kind, medium) for kind, medium in media]
    gathered = shared_reader(policy or MediaPolicy()).read(refs, there.set)
    assert there.wait(SECONDS)
    return gathered.results()


def read_image(content: bytes, **limits: Any) -> PIL.Image.Image:
    """Return the image that a model runner receives for image data."""
    (image,) = read_all([("image", Media(data=in_base64(content)))], MediaPolicy(**limits))
    assert isinstance(image, Image)
    assert image.pixels.mode == "RGB"
    return image.pixels


def read_sound(content: bytes, **limits: Any) -> Sound:
    """Return the sound that a model runner receives for sound data."""
    (sound,) = read_all([("sound", Media(data=in_base64(content)))], MediaPolicy(**limits))
    assert isinstance(sound, Sound)
    assert (sound.samples.ndim, sound.samples.dtype) == (1, np.float32)
    return sound


def refusal(kind: MediaKind, medium: Media, policy: MediaPolicy | None = None) -> RequestError:
    """Return the error that a medium causes, after checking that it names the medium's field."""
    with pytest.raises(RequestError) as refused:
        read_all([(kind, medium)], policy)
    member = next(name for name in ("data", "path", "url") if getattr(medium, name) is not None)
    assert refused.value.field == f"{FIELD}.{member}"
    assert refused.value.message.startswith(f"{FIELD}.{member}: ")
    return refused.value


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def picture(mode: str = "RGB", size: tuple[int, int] = (8, 6), color: Any = None) -> PIL.Image.Image:
    """Return an image of one color; red by default."""
    return PIL.Image.new(mode, size, "red" if color is None else color)


def encoded(image: PIL.Image.Image, format: str = "PNG", **options: Any) -> bytes:
    """Return an image as the bytes of a file."""
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def animated(format: str) -> bytes:
    """Return a file with two frames."""
    return encoded(picture(), format, save_all=True, append_images=[picture(color="blue")], duration=100)


def bomb(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes whose header declares this size, in pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"")
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def wav(samples: Any, rate: int = 16_000, channels: int = 1) -> bytes:
    """Return a WAV file of 16-bit samples. The given samples are -1 to 1, with interleaved channels."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes((np.asarray(samples) * 32767).astype("<i2").tobytes())
    return file.getvalue()
