"""Find out whether a model can run in this installation. This module imports no model library."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lmwire_protocol import RequestError
from lmwire_protocol.extras import not_installed

from ..models.architectures import remapped_types
from ..multimodal.detect import is_supported, unsupported_problem
from .model_kind import Kind, detect_kind


def check_support(folder: Path, *, trust_remote_code: bool = False) -> tuple[dict[str, Any], Kind | None, str | None]:
    """Return a model's config.json, its kind, and why the model cannot run; None if it can.

    If the folder's files are incomplete, the config.json is an empty object, and the kind is None.

    Args:
        folder: The model folder.
        trust_remote_code: Whether the folder's Python files may run.
    """
    try:
        kind, config = detect_kind(folder, trust_remote_code=trust_remote_code)
    except RequestError as error:
        return {}, None, error.message.removeprefix(f"{folder} ").removeprefix(f"{folder}/")
    problem = _find_problem(kind, config)
    if kind == "vision" and problem is None and not _can_see(config):
        kind = "text"
    return config, kind, problem


def _find_problem(kind: Kind, config: dict[str, Any]) -> str | None:
    if kind in ("speech", "synthesis"):
        return _missing("mlx_audio")
    if kind == "embeddings":
        return _missing("mlx_vlm")
    if kind == "vision" and _can_see(config):
        return None
    if config.get("model_file") is not None:
        return None  # its architecture is in its own code
    if config["model_type"] not in _architectures("mlx_lm"):
        if kind == "vision" and not is_supported(config):
            return unsupported_problem(config)
        return f"mlx-lm has no architecture `{config['model_type']}`"
    return None


def _can_see(config: dict[str, Any]) -> bool:
    return is_supported(config) and config["model_type"] in _architectures("mlx_vlm")


def _missing(library: str) -> str | None:
    return None if find_spec(library) else not_installed(library.replace("_", "-"), "vision")


@cache
def _architectures(name: str) -> frozenset[str]:
    """Return the architectures of a library, read from its files: importing it takes a second."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return frozenset()
    library = Path(spec.origin).parent
    modules = {path.stem for path in (library / "models").iterdir()}
    return frozenset(modules | set(remapped_types(name)))
