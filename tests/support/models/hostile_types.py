"""`python hostile_types.py FOLDER [TYPE…]`: open a hostile folder as each type of mlx-vlm and of mlx-audio.

It does so below the worker's own refusal of most types, so that a test sees what lies under it. Types that are named
are opened without the guard. The program prints, as JSON, for each type whether the folder's code ran.
"""

import contextlib
import importlib
import io
import json
import logging
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx_audio.stt.models
import mlx_vlm.models
from transformers import AutoConfig, AutoFeatureExtractor, AutoImageProcessor, AutoProcessor, AutoTokenizer

from lmwire_worker.models.remote_code import guard_remote_code
from support.models.hostile_models import write_hostile_model


def types_of(package: Any) -> Iterator[str]:
    """Yield the model types that a package has."""
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg:
            yield module.name


def open_vision(model_type: str, folder: Path, *, trust: bool) -> None:
    """Open the processor of a type, and what transformers itself would make of the folder.

    Args:
        model_type: The type.
        folder: One of that type.
        trust: Whether to ask for trust as well, as some of mlx-vlm's processors do.
    """
    with contextlib.suppress(Exception):
        importlib.import_module(f"mlx_vlm.models.{model_type}")
    for name, value in list(sys.modules.items()):
        if name.startswith(f"mlx_vlm.models.{model_type}."):
            for part in list(vars(value).values()):
                if isinstance(part, type) and part.__module__ == name and hasattr(part, "from_pretrained"):
                    attempt(part.from_pretrained, folder, {"trust_remote_code": False})
    for settings in ({"trust_remote_code": False}, {}, {"trust_remote_code": True})[: 3 if trust else 1]:
        for auto in (AutoProcessor, AutoTokenizer, AutoConfig, AutoImageProcessor, AutoFeatureExtractor):
            attempt(auto.from_pretrained, folder, settings)


def open_speech(model_type: str, folder: Path, *, trust: bool) -> None:
    """Open a speech model of a type. mlx-audio has no setting for trust."""
    from mlx_audio.stt.utils import load_model

    attempt(load_model, folder, {"lazy": True, "model_type": model_type, "model_name_parts": []})


def attempt(read: Any, folder: Path, settings: dict[str, Any]) -> None:
    """Read a folder; how that ends does not matter."""
    with contextlib.suppress(Exception):
        read(folder, **settings)


def main() -> None:
    """Open them all."""
    warnings.simplefilter("ignore")
    logging.disable()
    root, unguarded = Path(sys.argv[1]), sys.argv[2:]
    ran: dict[str, bool] = {}
    for opener, package in ((open_vision, mlx_vlm.models), (open_speech, mlx_audio.stt.models)):
        for model_type in types_of(package):
            if unguarded and model_type not in unguarded:
                continue
            name = f"{package.__name__.partition('.')[0]}.{model_type}"
            marker = root / f"{name}.ran"
            folder = write_hostile_model(root / name / model_type, marker, model_type)
            guard = contextlib.nullcontext() if unguarded else guard_remote_code(folder, trusted=False)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception), guard:
                opener(model_type, folder, trust=not unguarded)
            ran[name] = marker.exists()
    print(json.dumps(ran))


if __name__ == "__main__":
    main()
