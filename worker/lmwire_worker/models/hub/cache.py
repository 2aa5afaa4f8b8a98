"""The cache of the hub on this machine, read without the hub's library."""

import os
from pathlib import Path
from typing import Final

from ..model_files import read_file

MAX_REF_BYTES: Final = 1_000
"""Maximum size of the file that names a snapshot."""
_PREFIX: Final = "models--"


def hub_home() -> str:
    """Return the folder of the hub's library, which environment variables name as for that library."""
    above = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return _expanded(os.environ.get("HF_HOME", os.path.join(above, "huggingface")))


def hub_cache() -> str:
    """Return the folder of the models that were fetched. It may not exist."""
    default = os.environ.get("HUGGINGFACE_HUB_CACHE", os.path.join(hub_home(), "hub"))
    return _expanded(os.environ.get("HF_HUB_CACHE", default))


def _expanded(path: str) -> str:
    return os.path.expandvars(os.path.expanduser(path))


def cached_repositories() -> dict[str, Path]:
    """Return the folders of the models in the cache, by hub id. A folder may lack a snapshot."""
    folders = Path(hub_cache()).glob(f"{_PREFIX}*")
    return {folder.name.removeprefix(_PREFIX).replace("--", "/"): folder for folder in folders}


def repository_of(hub_id: str) -> Path:
    """Return the folder that the cache has for a hub id. It may not exist."""
    return Path(hub_cache()) / (_PREFIX + hub_id.replace("/", "--"))


def find_snapshot_folder(repository: Path) -> Path | None:
    """Return a repository's snapshot: the one that `main` names, or else the latest; None if it has none.

    Raises:
        RequestError, OSError: The repository cannot be read.
    """
    main, snapshots = repository / "refs" / "main", repository / "snapshots"
    if main.exists():
        named = snapshots / os.path.basename(read_file(main, MAX_REF_BYTES).decode(errors="replace").strip())
        if named != snapshots / "" and named.is_dir():
            return named
    folders = [folder for folder in snapshots.iterdir() if folder.is_dir()] if snapshots.is_dir() else []
    return max(folders, key=lambda folder: folder.stat().st_mtime, default=None)
