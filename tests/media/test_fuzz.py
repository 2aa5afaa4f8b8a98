"""Damaged images and sounds, drawn by a seed, at a real worker: each ends its own request, and nothing else."""

import itertools
import random
import time
from collections.abc import Callable, Iterator

import pytest

from random_vision import write_vision_model
from support.media import hostile_media
from support.media.damage import damage
from support.media.fuzzing import fuzz_seconds
from support.media.reading_media import TONES, animated, bomb, encoded, in_base64, picture, wav
from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.slow

AT_ONCE = 8
"""Requests that are in work together."""
MOST_BYTES = 1_500_000_000
"""Largest growth of the worker's memory: some requests together have images of 16 million pixels each, and copies
of these."""


def images() -> dict[str, bytes]:
    """Return whole images, small enough for most damage to matter."""
    small = (40, 30)
    return {
        "png": encoded(picture(size=small)),
        "png palette": encoded(picture(size=small).convert("P")),
        "png 16 bits": encoded(picture("I;16", small, 0x8000)),
        "jpeg": encoded(picture(size=small), "JPEG"),
        "progressive jpeg": encoded(picture(size=small), "JPEG", progressive=True),
        "webp": encoded(picture(size=small), "WEBP"),
        "lossless webp": encoded(picture("RGBA", small), "WEBP", lossless=True),
        "gif": encoded(picture(size=small), "GIF"),
        "animated gif": animated("GIF"),
        "bmp": encoded(picture(size=small), "BMP"),
        "tiff": encoded(picture(size=small), "TIFF"),
        "packed tiff": encoded(picture(size=small), "TIFF", compression="tiff_lzw"),
        "bomb": bomb(4000, 4000),
        "jpeg with many scans": hostile_media.many_scans(scans=20, size=64),
        "webp with a note": encoded(picture("RGBA", small), "WEBP", exif=b"Exif\0\0II*\0"),
        "turned jpeg": encoded(picture(size=small), "JPEG", exif=hostile_media.turned()),
        "strips": hostile_media.many_strips(count=40),
        "directories": hostile_media.many_directories(count=20),
        "run lengths": hostile_media.bitmap_of_run_lengths(20, 30, lines=40),
    }


def sounds() -> dict[str, bytes]:
    """Return whole sounds."""
    tones = {name: (TONES / f"tone.{name}").read_bytes() for name in ("flac", "mp3", "ogg", "m4a", "aac")}
    return {
        "wav": wav([0.5, -0.5] * 2000),
        "stereo wav": wav([0.5, -0.5] * 2000, channels=2),
        "silence": hostile_media.silent_flac(4096 * 20, block=4096),
        "silence without a length": hostile_media.silent_flac(4096 * 20, block=4096, declared=0),
        "packets of one sample": hostile_media.one_sample_packets(packets=50),
        **tones,
    }


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    with WorkerProcess() as worker:
        worker.load(write_vision_model(tmp_path_factory.mktemp("model") / "model", "gemma4"))
        yield worker


def about(id: str, kind: str, content: bytes) -> Event:
    """Return a request to count the tokens of a chat about a file."""
    parts = [{"type": kind, "media": {"data": in_base64(content)}}, {"type": "text", "text": "What is it?"}]
    return {"id": id, "cmd": "tokenize", "messages": [{"role": "user", "content": parts}]}


@pytest.mark.parametrize(("kind", "files"), [("image", images), ("audio", sounds)])
def test_damaged_files_end_their_own_requests_and_nothing_else(
    worker: WorkerProcess, kind: str, files: Callable[[], dict[str, bytes]]
) -> None:
    whole = files()
    for name, content in whole.items():
        worker.call(about(f"whole {kind} {name}", kind, content))
    before, end = worker.resident_bytes, time.monotonic() + fuzz_seconds()
    for seed in itertools.count():
        names = random.Random(seed).choices(list(whole), k=AT_ONCE)
        contents = [damage(whole[name], random.Random(f"{seed} {place}")) for place, name in enumerate(names)]
        ids = [f"{kind} {seed} {place} {name}" for place, name in enumerate(names)]
        worker.send(*(about(id, kind, content) for id, content in zip(ids, contents, strict=True)))
        for id in ids:
            terminal = worker.terminal(id)
            assert terminal["event"] == "done" or terminal["code"] in ("invalid_request", "unsupported"), terminal
        worker.check_terminals(ids)
        assert worker.resident_bytes - before < MOST_BYTES, ids
        if time.monotonic() > end:
            break
    good = next(iter(whole.values()))
    assert worker.call(about(f"{kind} after all", kind, good))["event"] == "done"
