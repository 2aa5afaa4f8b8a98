"""Damaged folders, drawn by a seed, at a real worker: each ends its own load, and nothing else; none runs its code."""

import itertools
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from random_model import write_model
from random_vision import write_vision_model
from support.media.damage import damage
from support.media.fuzzing import fuzz_seconds
from support.media.reading_media import in_base64
from support.models.hostile_models import bring_code
from support.models.random_embeddings import write_embedding_model
from support.models.random_speech import recording, write_whisper
from support.process.worker_process import Event, WorkerProcess

VALUES: Final = (
    None, True, False, 0, -1, 1, 7, 64, 10**5, 10**9, 2**31, 2**53, 2**64, 10**30, -(10**9), 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "text", "\0", "../..", "/dev/zero", [], [1], [[]], {}, {"a": None},
    {"__float__": "NaN"},
)  # fmt: skip
KEYS: Final = (
    "num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size", "head_dim", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "rope_theta", "rope_scaling", "quantization", "model_type",
    "architectures", "eos_token_id", "text_config", "vision_config", "layer_types", "auto_map", "tokenizer_class",
    "chat_template", "model_max_length", "added_tokens_decoder", "image_token_id", "tie_word_embeddings", "dtype",
    "group_size", "bits", "mode", "patch_size", "spatial_merge_size", "kernel_size", "stride", "window_size",
)  # fmt: skip
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
    before, end = worker.resident_bytes, time.monotonic() + fuzz_seconds(1.5)
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


def spoil(folder: Path, draw: random.Random) -> str:
    """Change one file of a folder, and return which and how."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors", ".jinja"))
    path = folder / "config.json" if draw.random() < 0.5 else draw.choice(files)
    if path.suffix == ".json" and draw.random() < 0.7:
        return f"{path.name}: {_change_json(path, draw)}"
    if path.suffix == ".safetensors" and draw.random() < 0.6:
        return f"{path.name}: {_change_header(path, draw)}"
    path.write_bytes(damage(path.read_bytes(), draw))
    return f"{path.name}: damaged"


def _change_json(path: Path, draw: random.Random) -> str:
    """Put a wild value somewhere."""
    try:
        content: Any = json.loads(path.read_bytes())
    except ValueError:  # it was damaged before
        return "left"
    change = _set_somewhere(content, draw)
    path.write_text(json.dumps(content))
    return change


def _change_header(path: Path, draw: random.Random) -> str:
    """Let the header of a safetensors file lie; its length stays true."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    try:
        header: Any = json.loads(data[8:end])
    except ValueError:
        return "left"
    change = _set_somewhere(header, draw)
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data[end:])
    return change


def _set_somewhere(content: Any, draw: random.Random) -> str:
    """Replace or add one member of an object or a list, however deep."""
    place, path = content, list[Any]()
    while isinstance(place, dict | list) and place:
        key: Any = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or draw.random() < 0.3:
            if isinstance(place, dict) and draw.random() < 0.4:
                key = draw.choice(KEYS)
            place[key] = draw.choice((0, 1, -1)) if draw.random() < 0.3 else draw.choice(VALUES)
            return f"{[*path, key]} = {place[key]!r}"
        path.append(key)
        place = inner
    return "left"
