"""A bundle that is built once for all test processes, and again when anything in it changes."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from lmwire.cli.bundle.manifest import find_differences, read_manifest
from support.process.lmwire_command import LMWIRE, REPOSITORY

_CACHE: Final = REPOSITORY / ".cache" / "bundle"
_SOURCES: Final = ("protocol", "worker", "clients/python", "clients/http")
_SECONDS: Final = 540.0


def built_bundle() -> Path:
    """Return the folder of a bundle with the extra for this machine. Tests must not change it."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = _CACHE / _digest() / "lmwire"
        if not _is_intact(folder):
            for old in _CACHE.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            subprocess.run([LMWIRE, "bundle", folder], timeout=_SECONDS, check=True)
        return folder


def linked_copy(bundle: Path, target: Path) -> Path:
    """Make another folder with the same files, and return it."""
    shutil.copytree(bundle, target, copy_function=os.link, symlinks=True)
    return target


def _is_intact(folder: Path) -> bool:
    return folder.is_dir() and not find_differences(folder, read_manifest(folder))


def _digest() -> str:
    """Return a digest of lmwire's sources, and of the packages' versions."""
    digest = hashlib.sha256()
    for package in sorted(f"{package.name} {package.version}" for package in distributions()):
        digest.update(f"{package}\0".encode())
    files = [path for source in _SOURCES for path in (REPOSITORY / source).rglob("*") if path.is_file()]
    for path in sorted(path for path in files if "__pycache__" not in path.parts and "node_modules" not in path.parts):
        digest.update(f"{path.relative_to(REPOSITORY)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
