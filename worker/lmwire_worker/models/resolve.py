"""Find the folder of a model by its path, hub id or alias."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError
from lmwire_protocol.imports import lazy_pattern
from lmwire_protocol.model_names import PACKAGE_MODELS, NameIndex, ambiguous_name, is_package_model

from ..engine.interface import Report
from .folder_check import check_files
from .hub.cache import cached_repositories, find_snapshot_folder

ALIASES: Final = {
    "gemma": "mlx-community/gemma-3-4b-it-4bit",
    "gemma-3-1b": "mlx-community/gemma-3-1b-it-4bit",
    "gemma-3-4b": "mlx-community/gemma-3-4b-it-4bit",
    "llama-3.1-8b": "mlx-community/Meta-Llama-3.1-8B-Instruct-4bit",
    "llama-3.2-1b": "mlx-community/Llama-3.2-1B-Instruct-4bit",
    "llama-3.2-3b": "mlx-community/Llama-3.2-3B-Instruct-4bit",
    "mistral-7b": "mlx-community/Mistral-7B-Instruct-v0.3-4bit",
    "phi-4": "mlx-community/phi-4-4bit",
    "qwen": "mlx-community/Qwen3.5-4B-MLX-4bit",
    "qwen2.5-0.5b": "mlx-community/Qwen2.5-0.5B-Instruct-4bit",
    "qwen2.5-7b": "mlx-community/Qwen2.5-7B-Instruct-4bit",
    "qwen2.5-coder-7b": "mlx-community/Qwen2.5-Coder-7B-Instruct-4bit",
    "qwen3-0.6b": "mlx-community/Qwen3-0.6B-4bit",
    "qwen3-1.7b": "mlx-community/Qwen3-1.7B-4bit",
    "qwen3-4b": "mlx-community/Qwen3-4B-4bit",
    "qwen3-8b": "mlx-community/Qwen3-8B-4bit",
    "qwen3-14b": "mlx-community/Qwen3-14B-4bit",
    "qwen3-30b": "mlx-community/Qwen3-30B-A3B-4bit",
    "smollm2-135m": "mlx-community/SmolLM2-135M-Instruct",
}
"""Hub ids by alias, in lower case."""

BUILTIN_PREFIX: Final = "builtin:"
BUILTIN: Final = Path(__file__).parents[1] / "builtin"
HUB_ID: Final = lazy_pattern(r"\w[\w.-]*/\w[\w.-]*")
_NAME: Final = lazy_pattern(r"\w[\w.-]*")
"""An alias, or a word that could be one."""


def find_folder(
    path: str,
    report: Report,
    validate: Callable[[Path], dict[str, Any]] = check_files,
    *,
    trust_remote_code: bool = False,
) -> Path:
    """Return the folder of a path, a hub id, an alias, a built-in model, or the model of a Python package.

    The name of a model on disk may be in another case, or lack the owner. What the hub has and the disk does not is
    fetched. A name that can be a hub id or an alias is never a folder in the
    working directory, which may be somebody else's: such a folder is named as ./folder.

    Args:
        path: As a host writes it.
        report: Receives the progress of a download.
        validate: Returns the config.json of a snapshot, or raises RequestError if files are missing or damaged.
        trust_remote_code: Whether Python files are fetched with it.

    Raises:
        RequestError: model_not_found.
        LoadCancelled: from `report`.
    """
    if path.lower().startswith(BUILTIN_PREFIX):
        return _builtin(path)
    if is_package_model(path):
        from .package_models import find_package_model  # few loads name one, and it imports what fetches them

        return find_package_model(path)
    if HUB_ID.fullmatch(path) or _NAME.fullmatch(path):
        return _named(path, report, validate, trust_remote_code)
    # The functions of os.path take any string, however long or odd.
    folder = os.path.expanduser(path)
    if os.path.isdir(folder):
        return Path(folder).resolve()
    if os.path.exists(folder):
        raise RequestError("model_not_found", f"{path!r} is a file; give the folder that contains it")
    if path.startswith(("/", "./", "../", "~")) or path in (".", ".."):
        problem = f"{path[:200]!r} is not a folder on this machine; give a folder, a hub id as owner/name, or an alias"
        raise RequestError("model_not_found", problem)
    raise _unknown(path)


def _named(name: str, report: Report, validate: Callable[[Path], dict[str, Any]], trust_remote_code: bool) -> Path:
    try:
        hub_id = hub_id_of(name, validate)
        if not HUB_ID.fullmatch(hub_id):
            raise _unknown(name)
        from .hub.snapshot import find_snapshot

        return find_snapshot(hub_id, report, validate, trust_remote_code=trust_remote_code)
    except RequestError as error:
        if os.path.isdir(name):
            error.message += f"; for the folder of this name, in the worker's working directory, write ./{name}"
        raise


def hub_id_of(name: str, validate: Callable[[Path], dict[str, Any]] = check_files) -> str:
    """Return the hub id of an alias, or of the model on this machine that a name fits; the name itself if neither.

    Args:
        name: As a host writes it.
        validate: Returns the config.json of a snapshot, or raises RequestError if files are missing or damaged.

    Raises:
        RequestError: model_not_found, if it fits several whole models.
    """
    name = ALIASES.get(name.lower(), name)
    repositories = cached_repositories()
    index: NameIndex[str] = NameIndex()
    for hub_id in sorted(repositories):
        index.add(hub_id, (), hub_id)
    found = index.find_all(name)
    if len(found) > 1:
        found = [hub_id for hub_id in found if _is_whole(repositories[hub_id], validate)] or found
    if len(found) > 1:
        raise RequestError("model_not_found", ambiguous_name(name, found))
    return found[0] if found else name


def _is_whole(repository: Path, validate: Callable[[Path], dict[str, Any]]) -> bool:
    """Return whether a repository in the cache has a snapshot with all files of a model."""
    try:
        folder = find_snapshot_folder(repository)
        return folder is not None and bool(validate(folder))
    except (RequestError, OSError):
        return False


def meant_name(name: str) -> str:
    """Return a question with the known names that are similar to an unknown one; empty without any."""
    import difflib  # only a wrong name needs it, and it would slow every start

    close = difflib.get_close_matches(name.lower(), [*ALIASES, *sorted(PACKAGE_MODELS)], n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else ""


def _unknown(path: str) -> RequestError:
    hint = meant_name(path) or f"the aliases are {', '.join(ALIASES)}"
    problem = f"{path[:200]!r} is not a folder, a hub id as owner/name, or an alias; {hint}"
    return RequestError("model_not_found", problem)


def _builtin(path: str) -> Path:
    names = sorted(folder.name for folder in BUILTIN.iterdir()) if BUILTIN.is_dir() else []
    if not names:
        problem = f"{path}: this installation lacks its built-in models, in {BUILTIN}; install lmwire again"
        raise RequestError("model_not_found", problem)
    name = path[len(BUILTIN_PREFIX) :].lower()
    if name not in names:
        known = ", ".join(BUILTIN_PREFIX + name for name in names)
        raise RequestError("model_not_found", f"{path[:200]!r} is not a built-in model; give {known}")
    return BUILTIN / name
