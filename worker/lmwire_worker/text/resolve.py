"""From what a host calls a model to its folder on disk."""

import difflib
import os
import re
from pathlib import Path
from typing import Final

from lmwire_protocol import RequestError

from ..lane import Report
from .aliases import ALIASES

BUILTIN_PREFIX: Final = "builtin:"
BUILTIN: Final = Path(__file__).parents[1] / "builtin"
HUB_ID: Final = re.compile(r"[\w.-]+/[\w.-]+")


def find_folder(path: str, report: Report, *, trust_remote_code: bool = False) -> Path:
    """The folder of a path, a hub id, an alias or a built-in model; fetched when the hub has it and the disk does not.

    Args:
        path: What the host calls it.
        report: Told of a download.
        trust_remote_code: Whether Python files are fetched with it.

    Raises:
        RequestError: model_not_found.
        LoadCancelled: from `report`.
    """
    if path.startswith(BUILTIN_PREFIX):
        return _builtin(path)
    # The functions of os.path take any string, however long or odd.
    folder = os.path.expanduser(path)
    if os.path.isdir(folder):
        return Path(folder).resolve()
    if os.path.exists(folder):
        raise RequestError("model_not_found", f"{folder} is a file; give the folder that it lies in")
    if path.startswith(("/", "./", "../", "~")) or path in (".", ".."):
        raise RequestError("model_not_found", f"there is no folder {folder}")
    hub_id = ALIASES.get(path.lower(), path)
    if HUB_ID.fullmatch(hub_id):
        from .hub import find_snapshot

        return find_snapshot(hub_id, report, trust_remote_code=trust_remote_code)
    close = difflib.get_close_matches(path.lower(), ALIASES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"the aliases are {', '.join(ALIASES)}"
    problem = f"{path[:200]} is no folder, no hub id (owner/name) and no alias; {hint}"
    raise RequestError("model_not_found", problem)


def _builtin(path: str) -> Path:
    names = sorted(folder.name for folder in BUILTIN.iterdir()) if BUILTIN.is_dir() else []
    if not names:
        problem = f"{path}: this installation lacks its built-in models, in {BUILTIN}; install lmwire again"
        raise RequestError("model_not_found", problem)
    name = path.removeprefix(BUILTIN_PREFIX)
    if name not in names:
        known = ", ".join(BUILTIN_PREFIX + name for name in names)
        raise RequestError("model_not_found", f"{path}: there is no built-in model of that name, only {known}")
    return BUILTIN / name
