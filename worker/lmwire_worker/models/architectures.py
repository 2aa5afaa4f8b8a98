"""The architecture of a model: the module of mlx-lm that has it, and its config as mlx-lm reads it."""

import ast
import importlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from lmwire_protocol import RequestError

from .model_files import CONFIG, GENERATION_CONFIG, read_any_json

_FLOAT_KEY: Final = "__float__"
_FLOATS: Final = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
"""Numbers that JSON lacks, as transformers writes them: `{"__float__": "Infinity"}`."""


def read_config(folder: Path) -> dict[str, Any]:
    """Return a folder's config.json with all its numbers, and with the eos tokens of generation_config.json.

    Args:
        folder: The model's folder.

    Raises:
        RequestError: bad_model.
    """
    config = _decode_floats(read_any_json(folder / CONFIG))
    if tokens := generation_eos_tokens(folder):
        config["eos_token_id"] = tokens
    return config


def generation_eos_tokens(folder: Path) -> Any:
    """Return the tokens that end a turn by generation_config.json; None without them, or if it is damaged.

    Args:
        folder: The model's folder.
    """
    path = folder / GENERATION_CONFIG
    try:
        settings = read_any_json(path) if path.exists() else {}
    except RequestError:
        return None
    return settings.get("eos_token_id") or None


def import_architecture(config: Mapping[str, Any]) -> ModuleType:
    """Return the module of mlx-lm with a model's classes `Model` and `ModelArgs`.

    Args:
        config: The model's config.json.

    Raises:
        ValueError: mlx-lm does not have it.
    """
    name = _module_name(config)
    try:
        return importlib.import_module(f"mlx_lm.models.{name}")
    except ImportError as error:
        raise ValueError(f"Model type {name} not supported.") from error


def is_known(model_type: str) -> bool:
    """Return whether mlx-lm has a module for a model type. Imports nothing.

    Args:
        model_type: The type, as config.json names it.
    """
    spec = find_spec("mlx_lm")
    places = (spec and spec.submodule_search_locations) or ()
    is_module = any((Path(place) / "models" / f"{model_type}.py").is_file() for place in places)
    return is_module or (f'"{model_type}"' in _source("mlx_lm") and model_type in remapped_types("mlx_lm"))


def _module_name(config: Mapping[str, Any]) -> str:
    name: str = config["model_type"]
    if f'"{name}"' not in _source("mlx_lm"):  # in none of the tables, which take a while to read
        return name
    listed = config.get("architectures") or ()
    for each in (listed,) if isinstance(listed, str) else listed:
        if found := _table("mlx_lm", "MODEL_ARCHITECTURE_REMAPPING").get((name, each)):
            return found
    return remapped_types("mlx_lm").get(name, name)


def remapped_types(library: str) -> dict[str, str]:
    """Return the model types that a library has under another name, with their modules.

    They are read from the library's file: its import takes a second.

    Args:
        library: mlx_lm or mlx_vlm.
    """
    return _table(library, "MODEL_REMAPPING")


@cache
def _table(library: str, name: str) -> dict[Any, str]:
    for node in ast.parse(_source(library)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    return {}


@cache
def _source(library: str) -> str:
    spec = find_spec(library)
    places = (spec and spec.submodule_search_locations) or ()
    return "".join((Path(place) / "utils.py").read_text() for place in places)


def _decode_floats(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_FLOAT_KEY} and value[_FLOAT_KEY] in _FLOATS:
            return _FLOATS[value[_FLOAT_KEY]]
        return {name: _decode_floats(member) for name, member in value.items()}
    return [_decode_floats(member) for member in value] if isinstance(value, list) else value
