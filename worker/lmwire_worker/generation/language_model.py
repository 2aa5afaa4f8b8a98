"""Load a model folder as mlx-lm's `utils.load_model` does, without that module, which imports transformers.

Folders that MLX's tools did not convert, in another library's quantization, are left to mlx-lm itself.
"""

import inspect
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx import nn

from lmwire_protocol import RequestError

from ..models.architectures import import_architecture, read_config
from ..models.weights import SharedWeights, list_files, summarize_exception

_MODES: Final = {(4, 16): "nvfp4", (4, 32): "mxfp4", (8, 32): "mxfp8"}
"""MLX's modes of quantization with scales of one byte, by bits and group size."""


def check_architecture(config: dict[str, Any]) -> None:
    """Check that mlx-lm knows a model's architecture. Reads no weights.

    Raises:
        RequestError: unsupported.
    """
    if config.get("model_file") is not None:
        return
    try:
        module = import_architecture(config)
        _ = module.Model, module.ModelArgs
    except (ValueError, AttributeError, TypeError):  # some modules of the package are not models
        problem = f"this worker's mlx-lm has no architecture `{config['model_type']}`; a newer mlx-lm may have it"
        raise RequestError("unsupported", problem) from None


def open_shared_weights(folder: Path, *, trust_remote_code: bool) -> SharedWeights:
    """Return a model whose weights are not read yet.

    Args:
        folder: The model folder.
        trust_remote_code: Whether the folder's Python files may run.

    Raises:
        RequestError: bad_model.
    """
    files = list_files(folder)
    try:
        config = read_config(folder)
        if _needs_conversion(folder, config):
            from mlx_lm import utils

            network, config = utils.load_model(folder, lazy=True, trust_remote_code=trust_remote_code)
        else:
            network = _load(folder, config)
    except BaseException as error:  # mlx-lm's models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    return SharedWeights(folder, files, network, config)


def _needs_conversion(folder: Path, config: dict[str, Any]) -> bool:
    """Return whether a model has code of its own, or weights in the form of another library."""
    if config.get("model_file") is not None or config.get("quantize_activations"):
        return True
    if "quantization_config" in config:
        return config.get("quantization") is None and bool(config["quantization_config"])
    return "quantization_config" in config.get("text_config", {}) or (folder / "hf_quant_config.json").exists()


def _load(folder: Path, config: dict[str, Any]) -> nn.Module:
    """Return a network with all weights of its folder, which are not read yet."""
    weights: dict[str, mx.array] = {}
    for path in folder.glob("model*.safetensors"):
        weights.update(_read(path))
    module = import_architecture(config)
    network = module.Model(module.ModelArgs.from_dict(config))
    if hasattr(network, "sanitize"):
        weights = network.sanitize(weights)
    if (settings := config.get("quantization")) is not None:
        _quantize(network, settings, weights)
    network.eval()
    network.load_weights(list(weights.items()), strict=True)
    return network


def _read(path: Path) -> dict[str, mx.array]:
    found = mx.load(str(path))
    assert isinstance(found, dict)
    return found


def _quantize(network: nn.Module, settings: dict[str, Any], weights: dict[str, mx.array]) -> None:
    """Give a network the layers that its quantised weights need.

    Args:
        network: The network, which is changed.
        settings: The `quantization` of its config.json: the layers' settings by their names, and those of all others.
        weights: The weights by name.
    """

    def choose(name: str, module: nn.Module) -> Any:
        if name in settings:
            return settings[name]
        quantize: Any = getattr(module, "to_quantized", None)
        if quantize is None or f"{name}.scales" not in weights:
            return False
        chosen = _infer(name, module, weights)
        takes_global_scale = "global_scale" in inspect.signature(quantize).parameters
        if f"{name}.global_scale" in weights and takes_global_scale:
            chosen["global_scale"] = True
        return chosen

    mode = settings.get("mode", "affine")
    nn.quantize(network, settings["group_size"], settings["bits"], mode=mode, class_predicate=choose)


def _infer(name: str, module: Any, weights: dict[str, mx.array]) -> dict[str, Any]:
    """Return how a layer is quantised, by the shapes of its weights: a config need not name each layer."""
    scales, width = weights[f"{name}.scales"], module.weight.shape[-1]
    group_size = width // scales.shape[-1]
    bits = weights[f"{name}.weight"].shape[-1] * 32 // width
    if scales.dtype != mx.uint8:  # only this mode has scales of the weights' own type
        return {"group_size": group_size, "bits": bits, "mode": "affine"}
    if (mode := _MODES.get((bits, group_size))) is None:
        raise ValueError(f"Cannot infer the quantization mode of {name}: {bits} bits with group size {group_size}.")
    return {"group_size": group_size, "bits": bits, "mode": mode}
