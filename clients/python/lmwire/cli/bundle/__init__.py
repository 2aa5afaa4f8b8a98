"""`lmwire bundle`: make a folder with Python and lmwire that runs on a machine without Python, or check one."""

import importlib.util
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path
from typing import TYPE_CHECKING

from lmwire_protocol.extras import not_installed

from ..errors import OK, USAGE, CliError

if TYPE_CHECKING:
    from .manifest import File


def run(arguments: Namespace) -> int:
    """Make or check a bundle, and return the exit code."""
    if arguments.check:
        return _check(arguments.folder)
    return _build(arguments.folder, arguments.extra)


def _check(folder: Path) -> int:
    from .manifest import find_differences, read_manifest

    manifest = read_manifest(folder)
    if differences := find_differences(folder, manifest):
        raise CliError("\n".join([f"{folder} is not as `lmwire bundle` made it:", *differences]))
    print(f"{folder} is intact: lmwire {manifest.lmwire}, {_amount(manifest.files)}")
    return OK


def _build(folder: Path, extras: list[str]) -> int:
    if not all(map(importlib.util.find_spec, ("PyInstaller", "packaging"))):
        raise CliError(not_installed("PyInstaller", "bundle"))
    from .contents import default_extras, required_distributions

    _require_free(folder)
    extras = default_extras(extras)
    distributions = required_distributions(extras)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # The folder gets its name once it is whole, so that a failure leaves nothing.
        with tempfile.TemporaryDirectory(prefix=".lmwire-bundle-", dir=folder.parent) as work:
            built = _assemble(Path(work), extras, distributions)
            built.rename(folder)
    except OSError as error:
        raise CliError(f"{error.filename or folder}: {error.strerror}") from None
    return OK


def _require_free(folder: Path) -> None:
    """Refuse a folder that exists, unless it is empty."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CliError(f"{folder} is not a folder: name one that does not exist", USAGE)
    if folder.is_dir() and any(folder.iterdir()):
        raise CliError(f"{folder} is not empty: remove it, or name a folder that does not exist", USAGE)


def _assemble(work: Path, extras: list[str], distributions: list[Distribution]) -> Path:
    """Make a whole bundle in a temporary folder, and return its folder there."""
    from .contents import copy_licences, copy_packages
    from .interpreter import PACKAGES, build_program
    from .manifest import write_manifest

    _report(f"{len(distributions)} packages: {', '.join(package.name for package in distributions)}")
    _report("building the program")
    built = build_program(work)
    _report("copying the packages")
    copy_packages(distributions, built / PACKAGES)
    if without := copy_licences(distributions, built):
        _report(f"these packages bring no licence text: {', '.join(without)}")
    manifest = write_manifest(built, extras, distributions)
    _report(f"lmwire {manifest.lmwire} with {', '.join(extras)}: {_amount(manifest.files)}")
    return built


def _amount(files: "Sequence[File]") -> str:
    return f"{len(files)} files, {sum(file.size or 0 for file in files) / 1e6:.0f} MB"


def _report(sentence: str) -> None:
    print(f"lmwire bundle: {sentence}", file=sys.stderr, flush=True)
