"""Contents of a bundle: the installed packages that it needs, their files and their licences."""

import compileall
import importlib.util
import py_compile
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import Requirement

from lmwire_conformance.worker import transcript
from lmwire_protocol.extras import not_installed

from ..errors import USAGE, CliError
from .interpreter import python_licence

_DEVELOPMENT: Final = frozenset({"bundle", "checkout", "dev", "docs"})
"""Extras that no worker uses."""
_UNUSED: Final = frozenset({"datasets"})
"""Requirements that are left out with what they alone require. `datasets` reads data to train with: 230 MB."""
FOLDER: Final = "LICENSES"
_NAMES: Final = re.compile(r"(licen[cs]e|copying|notice|authors|copyright)", re.IGNORECASE)
_OWN_PACKAGES: Final = ("lmwire", "lmwire_conformance", "lmwire_http", "lmwire_protocol", "lmwire_worker")
_SKIPPED_SUFFIXES: Final = frozenset({".a", ".pth", ".pyc", ".pyi", ".pyo"})
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "tests"})
_SKIPPED_METADATA: Final = frozenset({"direct_url.json", "INSTALLER", "REQUESTED"})
"""Files about the installation on this machine."""
_NEED_TORCH: Final = tuple(f"transformers/models/*/{start}_*.py" for start in ("modeling", "modular", "convert"))
_NEEDED_ANYWAY: Final = "transformers/models/auto/*"
"""Files of transformers that import without PyTorch. The others are left out: they are two fifths of transformers."""


def required_distributions(extras: Iterable[str]) -> list[Distribution]:
    """Return lmwire's distribution and all that it requires with some extras, sorted by name.

    Args:
        extras: Extras of lmwire.

    Raises:
        CliError: An extra is unknown, or a package is not installed.
    """
    lmwire = distribution("lmwire")
    known = sorted(set(lmwire.metadata.get_all("Provides-Extra") or []) - _DEVELOPMENT)
    found: dict[str, Distribution] = {}
    for extra in extras:
        if extra not in known:
            raise CliError(f"--extra {extra} is unknown; name one of {', '.join(known)}", USAGE)
        _collect(lmwire, frozenset({extra}), extra, found, set())
    return [found[name] for name in sorted(found)]


def default_extras(extras: Iterable[str]) -> list[str]:
    """Return extras, sorted, with the one that this machine's worker needs."""
    chosen = set(extras)
    if not chosen & {"cpu", "cuda", "worker"}:
        chosen.add("worker" if sys.platform == "darwin" else "cpu")
    return sorted(chosen)


def canonical_name(name: str) -> str:
    """Return a distribution's name as all indexes normalize it.

    Source: https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _collect(
    parent: Distribution,
    extras: frozenset[str],
    lmwire_extra: str,
    found: dict[str, Distribution],
    seen: set[tuple[str, frozenset[str]]],
) -> None:
    """Add a distribution and what it requires to those found.

    Args:
        parent: The distribution.
        extras: Its extras that are asked for.
        lmwire_extra: The extra of lmwire that leads to it.
        found: Distributions by their canonical names.
        seen: Names and extras that need no second visit.
    """
    name = canonical_name(parent.name)
    found[name] = parent
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    for requirement in _active_requirements(parent, extras):
        try:
            child = distribution(requirement.name)
        except PackageNotFoundError:
            raise CliError(f"--extra {lmwire_extra}: {not_installed(requirement.name, lmwire_extra)}") from None
        _collect(child, frozenset(requirement.extras), lmwire_extra, found, seen)


def _active_requirements(parent: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield what a distribution requires on this machine with some extras."""
    for requirement in map(Requirement, parent.requires or []):
        marker = requirement.marker
        active = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if active and canonical_name(requirement.name) not in _UNUSED:
            yield requirement


def copy_licences(distributions: list[Distribution], bundle: Path) -> list[str]:
    """Copy licence texts into the bundle, and return the names of packages that have none.

    Args:
        distributions: The packages in the bundle.
        bundle: The bundle's folder.
    """
    missing: list[str] = []
    for package in [*distributions, distribution("pyinstaller")]:
        folder = bundle / FOLDER / canonical_name(package.name)
        if not _copy(package, folder):
            missing.append(package.name)
    if (text := python_licence()) is not None:
        (bundle / FOLDER / "python").mkdir(parents=True)
        shutil.copyfile(text, bundle / FOLDER / "python" / "LICENSE.txt")
    else:
        missing.append("Python")
    return missing


def declared_licence(package: Distribution) -> str | None:
    """Return the licence that a package's metadata declares, such as "MIT"; None if it declares none.

    Source: https://packaging.python.org/en/latest/specifications/core-metadata/
    """
    for field in ("License-Expression", "License"):
        for value in package.metadata.get_all(field) or []:
            if "\n" not in value.strip():  # some packages have the whole text there
                return value.strip()
    classifiers = package.metadata.get_all("Classifier") or []
    names = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: ")]
    return ", ".join(names) or None


def _copy(package: Distribution, folder: Path) -> bool:
    """Copy a package's licence texts, and return whether there were any."""
    texts = [
        file
        for file in package.files or []
        if ".." not in file.parts and _NAMES.match(file.name) and file.suffix not in (".py", ".pyc", ".json")
    ]
    for file in texts:
        below = [part for part in file.parts if not part.endswith(".dist-info") and part != "licenses"]
        target = folder.joinpath(*below)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(file.locate()), target)
    return bool(texts)


def copy_packages(distributions: list[Distribution], folder: Path) -> None:
    """Copy distributions' files, and compile their modules.

    Args:
        distributions: What to copy. The packages of lmwire are copied from wherever Python imports them.
        folder: The folder on the bundle's `sys.path`.

    Raises:
        CliError: A distribution does not list its files.
    """
    for each in distributions:
        for relative, source in sorted(_files(each)):
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
