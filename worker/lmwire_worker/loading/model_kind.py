"""Detection of a model folder's kind. Imports no model library."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from lmwire_protocol import RequestError
from lmwire_protocol.extras import not_installed

from ..embeddings.recipe import is_embedding_model
from ..models.architectures import remapped_types
from ..models.config_check import check_config
from ..models.folder_check import check_folder, check_weights
from ..models.model_files import CONFIG, bad_model, check_entries, read_json
from ..models.settings_check import check_settings
from ..multimodal.detect import is_supported, takes_images, unsupported_problem
from ..synthesis.detect import is_synthesis_model
from ..transcription.detect import is_speech_model

Kind = Literal["text", "vision", "speech", "synthesis", "embeddings"]


def detect_kind(folder: Path, *, trust_remote_code: bool) -> tuple[Kind, dict[str, Any]]:
    """Check a folder's files, and return the kind of its model and its config.json.

    Args:
        folder: The model folder.
        trust_remote_code: Allow code from the folder.

    Raises:
        RequestError: bad_model, unsupported.
    """
    try:
        return _kind_of(folder, trust_remote_code=trust_remote_code)
    except RequestError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, OSError) as error:  # fields of types that none expects
        raise bad_model(
            folder, f"has files that do not make sense: {type(error).__name__}: {str(error)[:300]}"
        ) from None


def _kind_of(folder: Path, *, trust_remote_code: bool) -> tuple[Kind, dict[str, Any]]:
    config = read_json(folder / CONFIG)
    speaks = is_synthesis_model(config)
    if speaks or is_speech_model(config):
        check_settings(folder, config)
        check_entries(folder)  # the other files of such models have names of their own
        if not any(folder.glob("*.safetensors")):
            raise bad_model(folder, "has no weights: no file *.safetensors")
        check_config(folder / CONFIG, config, check_weights(folder))
        return "synthesis" if speaks else "speech", config
    config = check_folder(folder, trust_remote_code=trust_remote_code)
    if is_embedding_model(folder, config):
        return "embeddings", config
    return "vision" if takes_images(folder, config) else "text", config


# Whether a model can run in this installation.


def check_support(folder: Path, *, trust_remote_code: bool = False) -> tuple[dict[str, Any], Kind | None, str | None]:
    """Return a model's config.json, its kind, and why the model cannot run; None if it can.

    If the folder's files are incomplete, the kind is None, and the config.json has at most its model_type.

    Args:
        folder: The model folder.
        trust_remote_code: Whether the folder's Python files may run.
    """
    try:
        kind, config = detect_kind(folder, trust_remote_code=trust_remote_code)
    except RequestError as error:
        return _model_type(folder), None, error.message.removeprefix(f"{folder} ").removeprefix(f"{folder}/")
    problem = _find_problem(kind, config)
    if kind == "vision" and problem is None and not _can_see(config):
        kind = "text"
    return config, kind, problem


def _model_type(folder: Path) -> dict[str, Any]:
    """Return the model_type of a folder's config.json alone, for which no other file is needed; empty without one."""
    try:
        name = read_json(folder / CONFIG).get("model_type")
    except (RequestError, OSError):
        return {}
    return {"model_type": name} if isinstance(name, str) else {}


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
