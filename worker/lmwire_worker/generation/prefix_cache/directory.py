"""Manage the directory of the cache files of all models: its permissions, and its size."""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

from .cache_file import FILE_NAME, TEMPORARY_NAME, ForeignFileError

ABANDONED_AFTER_S: Final = 3600.0
"""Age at which a temporary file is deleted, in seconds: its writer has crashed."""


def make_private(folder: Path) -> Path:
    """Create a folder that only this user can access.

    Raises:
        OSError: it cannot be created.
        ForeignFileError: it exists, and other users can access it.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise ForeignFileError(f"{folder} is not this user's alone; remove it, or name another directory")
    return folder


def shrink(directory: Path, budget_bytes: int) -> set[Path]:
    """Delete the least recently used files of all models beyond a budget, and return them.

    Args:
        directory: The directory of all models.
        budget_bytes: Maximum size of the files.
    """
    files = sorted(_files(directory))
    total = sum(size for _, size, _ in files)
    removed: set[Path] = set()
    for _, size, path in files:
        if total <= budget_bytes:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
        removed.add(path)
    return removed


def _files(directory: Path) -> list[tuple[float, int, Path]]:
    """Return (last use, size, path) of all complete files, and delete abandoned temporary files."""
    files: list[tuple[float, int, Path]] = []
    for path in directory.glob(f"{'[0-9a-f]' * 32}/*.safetensors"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if TEMPORARY_NAME.fullmatch(path.name) and status.st_mtime < time.time() - ABANDONED_AFTER_S:
                path.unlink()
            elif FILE_NAME.fullmatch(path.name):
                files.append((status.st_mtime, status.st_size, path))
    return files
