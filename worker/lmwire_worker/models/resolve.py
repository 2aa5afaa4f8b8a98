"""Find the folder of a model by its path, hub id or alias."""

import difflib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError
from lmwire_protocol.model_names import NameIndex, ambiguous_name

from ..engine.interface import Report
from .aliases import ALIASES
from .folder_check import check_files
from .hub.cache import cached_repositories, find_snapshot_folder
from .smollm2 import NAME as SMOLLM2
from .smollm2 import find_smollm2

BUILTIN_PREFIX: Final = "builtin:"
BUILTIN: Final = Path(__file__).parents[1] / "builtin"
HUB_ID: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_NAME: Final = re.compile(r"\w[\w.-]*")
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
    if path.lower() == SMOLLM2:
        return find_smollm2()
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


def _unknown(path: str) -> RequestError:
    close = difflib.get_close_matches(path.lower(), ALIASES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"the aliases are {', '.join(ALIASES)}"
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
