"""Damaged folders, drawn by a seed, at a real worker: each ends its own load, and nothing else; none runs its code.

It runs at night. For each commit, test_model_files.py damages files without a worker.
"""

import itertools
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from random_model import write_model
from random_vision import write_vision_model
from support.media.fuzzing import fuzz_seconds
from support.media.reading_media import in_base64
from support.models.hostile_models import bring_code
from support.models.random_embeddings import write_embedding_model
from support.models.random_speech import recording, write_whisper
from support.models.spoiled_folders import spoil
from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.nightly

MOST_BYTES: Final = 2_000_000_000
"""Memory that the worker may gain."""
CHAT: Final = {"cmd": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}

BASES: dict[str, tuple[Callable[[Path], Path], Event]] = {
    "text": (write_model, CHAT),
    "quantised": (lambda folder: write_model(folder, quantize=(4, 32)), CHAT),
    "vision": (write_vision_model, CHAT),
    "embeddings": (write_embedding_model, {"cmd": "embed", "input": ["Hi"]}),
    "speech": (write_whisper, {"cmd": "transcribe", "audio": {"data": in_base64(recording(0.3))}}),
}


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess() as worker:
        worker.load("builtin:tiny")
        yield worker


@pytest.mark.parametrize("base", BASES)
def test_a_damaged_folder_ends_its_own_load_and_nothing_else(worker: WorkerProcess, tmp_path: Path, base: str) -> None:
    write, request = BASES[base]
    marker = tmp_path / "mark"
    whole = write(tmp_path / "whole")
    bring_code(whole, marker)
    before, end = worker.resident_bytes, time.monotonic() + fuzz_seconds()
    for seed in itertools.count():
        folder = tmp_path / f"damaged {seed}"
        shutil.copytree(whole, folder)
        changes = [spoil(folder, random.Random(f"{base} {seed} {number}")) for number in range(1 + seed % 3)]
        print(base, seed, *changes, sep="\n", flush=True)  # a test that fails shows it
        ids = [f"load {base} {seed}", f"ask {base} {seed}"]
        worker.send({"id": ids[0], "cmd": "load", "path": str(folder)}, {"id": ids[1], **request})
        for id in ids:
            worker.terminal(id)
        worker.check_terminals(ids)
        assert not marker.exists(), changes
        assert worker.resident_bytes - before < MOST_BYTES, changes
        shutil.rmtree(folder)
        if time.monotonic() > end:
            break
    worker.load("builtin:tiny", id=f"{base} after all")
    assert worker.call({"id": f"{base} ask after all", **CHAT})["event"] == "done"
