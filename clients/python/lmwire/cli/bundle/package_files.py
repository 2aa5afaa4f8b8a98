"""Copy installed packages into a bundle as they are, with their metadata and with compiled code."""

import compileall
import importlib.util
import py_compile
import shutil
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from typing import Final

from lmwire_conformance.worker import transcript

from ..errors import CliError

_OWN_PACKAGES: Final = ("lmwire", "lmwire_conformance", "lmwire_http", "lmwire_protocol", "lmwire_worker")
_SKIPPED_SUFFIXES: Final = frozenset({".a", ".pth", ".pyc", ".pyi", ".pyo"})
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "tests"})
_SKIPPED_METADATA: Final = frozenset({"direct_url.json", "INSTALLER", "REQUESTED"})
"""Files about the installation on this machine."""
_NEED_TORCH: Final = tuple(f"transformers/models/*/{start}_*.py" for start in ("modeling", "modular", "convert"))
_NEEDED_ANYWAY: Final = "transformers/models/auto/*"
"""Files of transformers that import without PyTorch. The others are left out: they are two fifths of transformers."""


def copy_packages(distributions: list[Distribution], folder: Path) -> None:
    """Copy distributions' files, and compile their modules.

    Args:
        distributions: What to copy. The packages of lmwire are copied from wherever Python imports them.
        folder: The folder on the bundle's `sys.path`.

    Raises:
        CliError: A distribution does not list its files.
    """
    for distribution in distributions:
        for relative, source in sorted(_files(distribution)):
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
    _compile(folder)


def _files(distribution: Distribution) -> Iterator[tuple[PurePosixPath, Path]]:
    """Yield the path of each file in the bundle, and where it lies now."""
    if distribution.files is None:
        raise CliError(f"{distribution.name} has no list of its files (RECORD): install it again with pip")
    is_own = distribution.name == "lmwire"
    for file in distribution.files:
        in_metadata = ".dist-info" in file.parts[0]
        if (in_metadata or not is_own) and _belongs(file):
            yield PurePosixPath(file), Path(str(file.locate()))
    if is_own:
        yield from _own_files()


def _own_files() -> Iterator[tuple[PurePosixPath, Path]]:
    """Yield the files of lmwire's packages, which an editable installation does not list."""
    for name in _OWN_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise CliError(f"the package {name} cannot be found: install lmwire again with pip")
        package = Path(spec.origin).parent
        for source in package.rglob("*"):
            relative = PurePosixPath(name, source.relative_to(package).as_posix())
            if source.is_file() and _belongs(relative):
                yield relative, source
    for source in transcript.folder().iterdir():
        yield PurePosixPath("lmwire_conformance", "transcripts", source.name), source


def _belongs(file: PurePosixPath) -> bool:
    """Return whether a bundle needs a file."""
    if file.is_absolute() or ".." in file.parts or file.suffix in _SKIPPED_SUFFIXES:
        return False
    if _SKIPPED_FOLDERS & set(file.parts) or file.name in _SKIPPED_METADATA:
        return False
    return file.match(_NEEDED_ANYWAY) or not any(map(file.match, _NEED_TORCH))


def _compile(folder: Path) -> None:
    """Compile all modules. Python neither checks the results' times nor writes files into a bundle."""
    compileall.compile_dir(
        folder,
        maxlevels=64,
        quiet=2,
        workers=0,
        stripdir=folder,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
