"""Load LoRA and DoRA adapters in mlx-lm's format."""

import os
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten

from lmwire_protocol import RequestError

from .folder_check import check_safetensors
from .model_files import check_entries, read_json, shown
from .weights import summarize_exception

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapters.safetensors"
TYPES: Final = ("lora", "dora")
LEAVES: Final = ("lora_a", "lora_b", "m")
"""Names of an adapter's parameters."""


def find_adapter(path: str) -> Path:
    """Return the folder of an adapter, once its files are checked. Reads no weights.

    Raises:
        RequestError: model_not_found, bad_model, unsupported.
    """
    folder = Path(os.path.expanduser(path))
    if not os.path.isdir(folder):
        raise _refusal("model_not_found", f"{path[:200]!r} is not a folder on this machine; give an adapter's folder")
    try:
        check_entries(folder)
        config = read_json(folder / CONFIG)
        _check_type(folder, config)
        check_safetensors(folder / WEIGHTS)
    except RequestError as error:
        error.field = "adapter_path"
        raise
    return folder.resolve()


def attach_adapter(network: nn.Module, folder: Path) -> None:
    """Add an adapter to a network. Its weights are not read yet. After an error, the network is unusable.

    Args:
        network: The network, which is changed.
        folder: The adapter's folder.

    Raises:
        RequestError: bad_model.
    """
    from mlx_lm.tuner.utils import load_adapters  # it imports transformers

    before = _names(network)
    try:
        load_adapters(network, str(folder))
    except Exception as error:  # mlx-lm raises whatever a wrong config leads to
        raise _refusal(
            "bad_model", f"the adapter in {folder} does not fit the model: {summarize_exception(error)}"
        ) from None
    _check_complete(folder, _names(network) - before)
    network.eval()  # turns dropout off


def _check_type(folder: Path, config: dict[str, Any]) -> None:
    if "peft_type" in config:
        problem = "is in PEFT's format, and only mlx-lm's is read; merge it into the model, and convert that"
        raise _refusal("unsupported", f"the adapter in {folder} {problem}")
    kind = config.get("fine_tune_type", "lora")
    if kind not in TYPES:
        names = " and ".join(TYPES)
        problem = f"is of type {shown(kind)}, and only {names} can be loaded; make it a model with mlx_lm.fuse"
        raise _refusal("unsupported", f"the adapter in {folder} {problem}")


def _check_complete(folder: Path, added: set[str]) -> None:
    """Refuse an adapter that changes nothing, or whose file lacks weights that its config names."""
    needed = {name for name in added if name.rsplit(".", 1)[-1] in LEAVES}
    if not needed:
        raise _refusal("bad_model", f"the adapter in {folder} changes nothing: its config names no layer of the model")
    weights: Any = mx.load(str(folder / WEIGHTS))
    if missing := sorted(needed - weights.keys()):
        problem = f"lacks {len(missing)} of its {len(needed)} weights: {', '.join(missing[:3])}"
        raise _refusal("bad_model", f"the adapter in {folder} {problem}")


def _names(network: nn.Module) -> set[str]:
    leaves: Any = tree_flatten(network.parameters())
    return {name for name, _ in leaves}


def _refusal(code: str, problem: str) -> RequestError:
    return RequestError(code, problem, field="adapter_path")
