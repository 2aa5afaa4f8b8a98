"""The cache of the hub on this machine, read without the hub's library."""

import os
from pathlib import Path
from typing import Final

from huggingface_hub import constants

from ..model_files import read_file

MAX_REF_BYTES: Final = 1_000
"""Maximum size of the file that names a snapshot."""
_PREFIX: Final = "models--"


def cached_repositories() -> dict[str, Path]:
    """Return the folders of the models in the cache, by hub id. A folder may lack a snapshot."""
    folders = Path(constants.HF_HUB_CACHE).glob(f"{_PREFIX}*")
    return {folder.name.removeprefix(_PREFIX).replace("--", "/"): folder for folder in folders}


def repository_of(hub_id: str) -> Path:
    """Return the folder that the cache has for a hub id. It may not exist."""
    return Path(constants.HF_HUB_CACHE) / (_PREFIX + hub_id.replace("/", "--"))


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
