"""A model with two draft models: one always proposes the model's next token, the other never does.

The model is a copy of a given one in which all layers but the first few add nothing, though they take as long as
before. So the first few layers alone, as the draft model, give the same tokens. With its last norm negated, the draft
model proposes the least likely token instead.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import mlx.core as mx

from ...errors import USAGE, CliError

_PART: Final = 8
"""The draft model has one layer for this number of the model's layers."""
_OUTPUTS: Final = ("o_proj", "down_proj")
"""Weights that produce a layer's output."""
_LAST_NORM: Final = "model.norm.weight"


class DraftModels(NamedTuple):
    """Model folders, and their numbers of layers."""

    model: Path
    right: Path
    wrong: Path
    model_layers: int
    layers: int


def write_drafts(folder: Path, target: Path) -> DraftModels:
    """Write the three models, made from a given one.

    Args:
        folder: The given model folder.
        target: A folder to write the three model folders into.

    Raises:
        CliError: The model's layers are not those of a plain transformer.
    """
    weights = {name: array for file in folder.glob("model*.safetensors") for name, array in _load(file)}
    depth = json.loads((folder / "config.json").read_text()).get("num_hidden_layers")
    if not depth or _LAST_NORM not in weights or not any(_is_output(name) for name in weights):
        raise CliError(f"{folder} does not have plain transformer layers, so no draft model can be made from it", USAGE)
    layers = max(1, depth // _PART)
    model = {n: mx.zeros_like(w) if _layer(n) >= layers and _is_output(n) else w for n, w in weights.items()}
    right = {n: w for n, w in weights.items() if _layer(n) < layers}
    wrong = right | {_LAST_NORM: -weights[_LAST_NORM]}
    return DraftModels(
        _write(folder, target / "model", model, depth),
        _write(folder, target / "right", right, layers),
        _write(folder, target / "wrong", wrong, layers),
        depth,
        layers,
    )


def _load(file: Path) -> Iterator[tuple[str, mx.array]]:
    arrays = mx.load(str(file))
    assert isinstance(arrays, dict)
    yield from arrays.items()


def _layer(name: str) -> int:
    """Return the number of a weight's layer, or -1 for a weight outside of the layers."""
    _, found, rest = name.partition(".layers.")
    return int(rest.partition(".")[0]) if found else -1


def _is_output(name: str) -> bool:
    return any(f".{output}." in name for output in _OUTPUTS)


def _write(folder: Path, copy: Path, weights: dict[str, mx.array], layers: int) -> Path:
    copy.mkdir()
    for file in folder.iterdir():
        if file.name != "config.json" and not file.name.startswith("model"):
            (copy / file.name).symlink_to(file.resolve())
    config = json.loads((folder / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": layers}))
    mx.save_safetensors(str(copy / "model.safetensors"), weights, {"format": "mlx"})  # pyright: ignore[reportUnknownMemberType]
    return copy
