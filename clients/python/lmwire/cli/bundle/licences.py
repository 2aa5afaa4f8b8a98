"""The licence texts of a bundle's packages."""

import re
import shutil
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from .distributions import canonical_name
from .interpreter import python_licence

FOLDER: Final = "LICENSES"
_NAMES: Final = re.compile(r"(licen[cs]e|copying|notice|authors|copyright)", re.IGNORECASE)


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
