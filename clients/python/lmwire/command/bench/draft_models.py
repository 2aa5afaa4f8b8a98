"""A model with two drafts, of which one proposes just what the model says and the other what it never says.

The model is a given one in which all layers but the first few add nothing, though they take as long as before. So these
few, as a model of their own, say the same; and with its last norm turned round, that takes the unlikeliest token.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import mlx.core as mx

from ..failures import USAGE, Failure

_PART: Final = 8
"""A draft has this part of the model's layers."""
_OUTPUTS: Final = ("o_proj", "down_proj")
"""What a layer adds comes out of these."""
_LAST_NORM: Final = "model.norm.weight"


class Drafts(NamedTuple):
    """Folders of models, and how many layers they have."""

    model: Path
    right: Path
    wrong: Path
    model_layers: int
    layers: int


def write_drafts(folder: Path, target: Path) -> Drafts:
    """Writes the three models of a given one into `target`.

    Raises:
        Failure: its layers are not as expected.
    """
    weights = {name: array for file in folder.glob("model*.safetensors") for name, array in _load(file)}
    depth = json.loads((folder / "config.json").read_text()).get("num_hidden_layers")
    if not depth or _LAST_NORM not in weights or not any(_is_output(name) for name in weights):
        raise Failure(f"{folder} is no model of plain transformer layers, of which a draft can be made", USAGE)
    layers = max(1, depth // _PART)
    model = {n: mx.zeros_like(w) if _layer(n) >= layers and _is_output(n) else w for n, w in weights.items()}
    right = {n: w for n, w in weights.items() if _layer(n) < layers}
    wrong = right | {_LAST_NORM: -weights[_LAST_NORM]}
    return Drafts(
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
    """The number of the layer that a weight belongs to; -1 for none."""
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
    mx.save_safetensors(str(copy / "model.safetensors"), weights, {"format": "mlx"})
    return copy
