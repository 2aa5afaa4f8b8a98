"""Damage to the files of a model folder, drawn by a seed."""

import json
import random
from pathlib import Path
from typing import Any, Final

from support.media.damage import damage

VALUES: Final = (
    None, True, False, 0, -1, 1, 7, 64, 10**5, 10**9, 2**31, 2**53, 2**64, 10**30, -(10**9), 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "text", "\0", "../..", "/dev/zero", [], [1], [[]], {}, {"a": None},
    {"__float__": "NaN"}, "x" * 100_000, "\ud800", [1, "a", 2.5, None], [[1]] * 300, list(range(2000)), 2**63,
    [{"name": "a", "template": "{{ a }}"}, {"name": 5}], {"a": {"a": {"a": [{}]}}},
)  # fmt: skip
KEYS: Final = (
    "num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size", "head_dim", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "rope_theta", "rope_scaling", "quantization", "model_type",
    "architectures", "eos_token_id", "model_file", "weight_map", "data_offsets", "shape",
    "text_config", "vision_config", "layer_types", "auto_map", "tokenizer_class",
    "chat_template", "model_max_length", "added_tokens_decoder", "image_token_id", "tie_word_embeddings", "dtype",
    "group_size", "bits", "mode", "patch_size", "spatial_merge_size", "kernel_size", "stride", "window_size",
)  # fmt: skip


def spoil(folder: Path, draw: random.Random, *, often: str = "config.json") -> str:
    """Change one file of a folder, and return which and how.

    Args:
        folder: The folder.
        draw: Draws the change.
        often: The file that is changed every second time.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors", ".jinja"))
    path = folder / often if draw.random() < 0.5 else draw.choice(files)
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
