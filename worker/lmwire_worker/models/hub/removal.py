"""Remove a model from the cache of the hub.

As a program, `python -P -m lmwire_worker.models.hub.removal NAME`, it writes the model to stdout as JSON, or an error.
When it then reads a line, it removes the model, and reports that.
"""

import json
import os
import shutil
import signal
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from lmwire_protocol import RequestError
from lmwire_protocol.model_names import is_package_model

from ...process.run_files import LoadedModel, read_loaded_models
from ..package_models import package_model_folder
from .cache import cached_repositories
from .pull import require_hub_id


@dataclass(frozen=True)
class CachedModel:
    """A model in the cache, with all of its revisions."""

    hub_id: str
    folder: Path
    size_bytes: int
    """Size of the files that only this model has, in bytes."""
    users: tuple[LoadedModel, ...]
    """The running workers of this user that have loaded it."""


def find_cached(name: str) -> CachedModel:
    """Return the model in the cache that a name stands for.

    Args:
        name: A hub id, an alias or the name of a model from a package; for a model in the cache in any letter case
            and without its owner.

    Raises:
        RequestError: model_not_found.
    """
    if is_package_model(name):
        hub_id, folder = name.lower(), package_model_folder(name)
    else:
        hub_id = require_hub_id(name)
        folder = cached_repositories().get(hub_id)
    if folder is None or not folder.exists():
        raise RequestError("model_not_found", f"{hub_id} is not in the cache; `lmwire models --all` lists what is")
    if folder.is_symlink():
        problem = f"{folder} is a link to {os.path.realpath(folder)}, which may be in use elsewhere"
        raise RequestError("model_not_found", f"{problem}; remove it yourself")
    users = tuple(used for used in read_loaded_models() if Path(used.folder).is_relative_to(folder.resolve()))
    return CachedModel(hub_id, folder, _size_of(folder), users)


def remove(model: CachedModel) -> None:
    """Remove all files of a model. Links are removed, and what they lead to stays.

    Raises:
        OSError: A file cannot be removed.
    """
    shutil.rmtree(model.folder)
    shutil.rmtree(model.folder.parent / ".locks" / model.folder.name, ignore_errors=True)


def _size_of(folder: Path) -> int:
    paths = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    found = [path.lstat() for path in paths]
    return sum(status.st_size for status in found if stat.S_ISREG(status.st_mode) and status.st_nlink == 1)


def main() -> None:
    """Describe the model that the command line names, and remove it when stdin says so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C at the question ends this program without a traceback
    (name,) = sys.argv[1:]
    try:
        model = find_cached(name)
        users = [user.pid for user in model.users]
        _write({"hub_id": model.hub_id, "size_bytes": model.size_bytes, "users": users})
        if sys.stdin.readline():
            remove(model)
            _write({})
    except RequestError as error:
        _write({"problem": error.message})
    except OSError as error:
        _write({"problem": f"{name} cannot be removed: {error}"})


def _write(report: object) -> None:
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
