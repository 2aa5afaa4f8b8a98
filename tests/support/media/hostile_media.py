"""Small files that are much work for a decoder, or claim what is not true."""

import struct
import zlib
from collections.abc import Callable

import numpy as np
import PIL.Image
from PIL import PngImagePlugin

from support.media.reading_media import TONES, encoded, picture, wav


def one_colour(megapixels: int = 64) -> bytes:
    """Return a PNG of some hundred bytes for each megapixel."""
    return encoded(PIL.Image.new("P", (8000, megapixels * 125)), optimize=True)


def many_scans(scans: int = 3000, size: int = 4096) -> bytes:
    """Return a progressive JPEG whose last scan comes again and again, without data."""
    whole = encoded(picture("L", (size, size), 128), "JPEG", progressive=True)
    start = whole.rindex(b"\xff\xda")
    return whole[:-2] + whole[start:-2] * scans + b"\xff\xd9"


def silent_flac(samples: int, rate: int = 8000, block: int = 65535, declared: int | None = None) -> bytes:
    """Return a FLAC of silence, in some bytes for each block.

    Args:
        samples: Number of samples; whole blocks.
        rate: Samples per second.
        block: Samples of a block.
        declared: Number of samples that the header declares; the truth if None.
    """
    declared = samples if declared is None else declared
    info = struct.pack(">HH", block, block) + bytes(6) + struct.pack(">Q", rate << 44 | 15 << 36 | declared) + bytes(16)
    head = b"fLaC" + b"\x80" + len(info).to_bytes(3) + info
    return head + b"".join(_flac_frame(number, block) for number in range(samples // block))


def _flac_frame(number: int, block: int) -> bytes:
    """Return a frame of a constant subframe, as section 9 of RFC 9639 describes it."""
    head = b"\xff\xf8" + bytes([0x70, 0x08]) + _coded(number) + (block - 1).to_bytes(2)
    head += bytes([_crc(head, 8, 0x07)])
    body = head + b"\x00\x00\x00"  # constant, 0
    return body + _crc(body, 16, 0x8005).to_bytes(2)


def _coded(number: int) -> bytes:
    return chr(number).encode("utf-8", "surrogatepass") if number < 0x110000 else b""


def _crc(data: bytes, bits: int, polynomial: int) -> int:
    value, top, mask = 0, 1 << (bits - 1), (1 << bits) - 1
    for byte in data:
        value ^= byte << (bits - 8)
        for _ in range(8):
            value = (value << 1 ^ polynomial if value & top else value << 1) & mask
    return value


def one_sample_packets(packets: int = 20_000) -> bytes:
    """Return an M4A whose table of times gives one sample to each packet, which all are the same bytes."""
    whole = (TONES / "tone.m4a").read_bytes()
    boxes = _Boxes(whole)
    return boxes.with_packets(packets)


class _Boxes:
    """The boxes of an MP4 file, of which the tables of packets change."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def with_packets(self, count: int) -> bytes:
        """Return a file with `count` packets of one sample each, at the place of the first packet."""
        first, size = self._first_packet()
        tables = {
            b"stts": struct.pack(">IIII", 0, 1, count, 1),
            b"stsz": struct.pack(">III", 0, size, count),
            b"stsc": struct.pack(">IIIII", 0, 1, 1, 1, 1),
            b"stco": struct.pack(">II", 0, count) + struct.pack(">I", first) * count,
            b"edts": None,
            b"sgpd": None,
            b"sbgp": None,
        }
        return self._rewritten(self._content, tables, count)

    def _first_packet(self) -> tuple[int, int]:
        sizes, places = self._content.index(b"stsz"), self._content.index(b"stco")
        (size,) = struct.unpack_from(">I", self._content, sizes + 16)
        (place,) = struct.unpack_from(">I", self._content, places + 12)
        return place, size

    def _rewritten(self, content: bytes, tables: dict[bytes, bytes | None], count: int) -> bytes:
        made, at = b"", 0
        while at < len(content):
            size, kind = struct.unpack_from(">I4s", content, at)
            body = content[at + 8 : at + size]
            if kind in tables:
                body = tables[kind]
            elif kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
                body = self._rewritten(body, tables, count)
            elif kind == b"mdhd":
                body = body[:16] + struct.pack(">I", count) + body[20:]
            if body is not None:
                made += struct.pack(">I4s", len(body) + 8, kind) + body
            at += size
        return made


def _png(*chunks: tuple[bytes, bytes], size: tuple[int, int] = (8, 8)) -> bytes:
    """Return a PNG with further chunks after its header."""
    whole = encoded(picture(size=size))
    extra = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return whole[:33] + extra + whole[33:]


def images() -> dict[str, Callable[[], bytes]]:
    """Return functions that make hostile images."""
    zeros = zlib.compress(bytes(60_000_000), 9)
    return {
        "one colour": one_colour,
        "many scans": many_scans,
        "profile that expands": lambda: _png((b"iCCP", b"x\0\0" + zeros)),
        "text that expands": lambda: _png(*[(b"zTXt", b"x\0\0" + zeros)] * 20),
        "international text that expands": lambda: _png((b"iTXt", b"x\0\1\0\0\0" + zeros)),
        "many chunks": lambda: _png(*[(b"tEXt", b"a\0b")] * 300_000),
        "many directories": many_directories,
        "many strips": many_strips,
        "strip that expands": lambda: encoded(picture(size=(8000, 8000)), "TIFF", compression="tiff_adobe_deflate"),
        "exif of nothing but entries": _exif_bomb,
        "lines of a bitmap that go up": bitmap_of_run_lengths,
        "many frames": lambda: encoded(
            picture(size=(2000, 2000)),
            "GIF",
            save_all=True,
            append_images=[picture(size=(2000, 2000), color="blue")] * 50,
        ),
        "a line": lambda: encoded(PIL.Image.new("L", (60_000_000, 1))),
        "lossless webp": lambda: encoded(picture(size=(8000, 8000)), "WEBP", lossless=True, method=0),
    }


def many_directories(count: int = 100_000) -> bytes:
    """Return a TIFF whose directories each lead to the next."""
    entry = struct.pack("<HHII", 0x0100, 4, 1, 8)
    made, at = [b"II*\0" + struct.pack("<I", 8)], 8
    for _ in range(count):
        made.append(struct.pack("<H", 1) + entry + struct.pack("<I", at + 18))
        at += 18
    return b"".join(made) + bytes(18)


def many_strips(count: int = 2_000_000) -> bytes:
    """Return a TIFF of one byte in each strip."""
    tags = [(0x0100, 4, 1, 1), (0x0101, 4, 1, count), (0x0102, 3, 1, 8), (0x0103, 3, 1, 1), (0x0106, 3, 1, 1)]
    tags += [(0x0111, 4, count, 200), (0x0115, 3, 1, 1), (0x0116, 4, 1, 1), (0x0117, 4, count, 200 + 4 * count)]
    head = b"II*\0" + struct.pack("<IH", 8, len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    return head.ljust(200, b"\0") + struct.pack("<I", 8) * count + struct.pack("<I", 1) * count


def _exif_bomb() -> bytes:
    """Return a JPEG whose note about the camera has directories within directories."""
    entries = b"".join(struct.pack("<HHII", 0x8769, 4, 1, 8) for _ in range(5000))
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 5000) + entries + struct.pack("<I", 8)
    return encoded(picture(), "JPEG", exif=exif[:65_000])


def bitmap_of_run_lengths(width: int = 20_000, height: int = 3000, lines: int = 50_000) -> bytes:
    """Return a BMP whose run lengths go 255 lines up, again and again."""
    data = b"\0\2\xff\xff" * lines + b"\0\1"
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(data), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 1024 + len(data), 0, 0, 54 + 1024) + info + bytes(1024) + data


def turned() -> bytes:
    """Return a note that the camera was held upright."""
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    return exif.tobytes()


def text_png() -> bytes:
    """Return a PNG with a long text, as image generators write them."""
    info = PngImagePlugin.PngInfo()
    info.add_text("workflow", "x" * 500_000)
    return encoded(picture(), pnginfo=info)


def sounds() -> dict[str, Callable[[], bytes]]:
    """Return functions that make hostile sounds."""
    hours = 65535 * (12 * 3600 * 8000 // 65535)
    return {
        "twelve hours of silence": lambda: silent_flac(hours),
        "a length that is too small": lambda: silent_flac(hours, declared=65535),
        "no length": lambda: silent_flac(hours, declared=0),
        "short blocks": lambda: silent_flac(16 * 500_000, block=16),
        "packets of one sample": one_sample_packets,
        "many packets of aac": lambda: (TONES / "tone.aac").read_bytes() * 4000,
        "mp3 again and again": lambda: (TONES / "tone.mp3").read_bytes() * 4000,
        "ogg again and again": lambda: (TONES / "tone.ogg").read_bytes() * 2000,
        "a header that claims all": _claiming_wav,
        "an odd rate": lambda: wav(np.zeros(100), rate=383_999),
        "one sample": lambda: wav([0.5]),
    }


def _claiming_wav() -> bytes:
    content = bytearray(wav(np.zeros(100)))
    content[40:44] = b"\xff\xff\xff\xff"
    return bytes(content)
