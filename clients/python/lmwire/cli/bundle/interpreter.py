"""Build the program of a bundle with PyInstaller: Python, its standard library and the libraries that these need.

PyInstaller does not look into the other packages. They are copied as files, because lmwire and its libraries import
models by name, read their own metadata and find data beside their modules.
"""

import importlib.util
import os
import pkgutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lmwire_protocol.extras import not_installed

from ...child_process import child_environment, python_command
from ..errors import CliError

PROGRAM: Final = "lmwire"
PACKAGES: Final = "_internal"
"""The folder of everything that the program imports."""
_ENTRY: Final = Path(__file__).with_name("bundled_program.py")
_LEFT_OUT: Final = (
    *("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "_tkinter", "turtle", "turtledemo", "venv"),
    *("distutils", "this", "antigravity"),
    *("readline", "_gdbm", "_dbm"),  # their libraries have licences that bind the program which contains them
)
"""Modules of the standard library that a worker does not use."""


def build_program(work: Path) -> Path:
    """Build the program, and return the folder that contains it.

    Args:
        work: An empty folder, for the result and for temporary files.

    Raises:
        CliError: PyInstaller is not installed, or failed.
    """
    if importlib.util.find_spec("PyInstaller") is None:
        raise CliError(not_installed("PyInstaller", "bundle"))
    done = subprocess.run(
        python_command("PyInstaller", *_options(work)),
        env=child_environment() | {"PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "315532800"} | _configuration(work),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    folder = work / "dist" / PROGRAM
    if done.returncode or not (folder / PROGRAM).is_file():
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise CliError(f"PyInstaller failed with exit code {done.returncode}:\n{tail}")
    return folder


def python_licence() -> Path | None:
    """Return the file with Python's licence, or None if this installation has none."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    candidates = (
        Path(sysconfig.get_path("stdlib")) / "LICENSE.txt",
        Path(sys.base_prefix) / "LICENSE.txt",
        Path(f"/usr/share/doc/python{version}/copyright"),
    )
    return next((file for file in candidates if file.is_file()), None)


def _configuration(work: Path) -> dict[str, str]:
    """Return variables that keep PyInstaller's files out of the user's folders."""
    return {"PYINSTALLER_CONFIG_DIR": os.fspath(work / "cache")}


def _options(work: Path) -> list[str]:
    """Return PyInstaller's command line."""
    return [
        *("--onedir", "--console", "--noconfirm", "--log-level", "WARN", "--name", PROGRAM),
        *("--contents-directory", PACKAGES, "--python-option", "X utf8=1"),
        *("--distpath", f"{work / 'dist'}", "--workpath", f"{work / 'build'}", "--specpath", f"{work}"),
        *(word for module in _standard_library() for word in ("--hidden-import", module)),
        *(word for module in _LEFT_OUT for word in ("--exclude-module", module)),
        os.fspath(_ENTRY),
    ]


def _standard_library() -> Iterator[str]:
    """Yield the modules of the standard library that this machine has, since packages may import any of them."""
    for name in sorted(sys.stdlib_module_names.difference(_LEFT_OUT, sys.builtin_module_names, ("__main__",))):
        spec = importlib.util.find_spec(name)
        if spec is not None:
            yield name
            yield from _submodules(name, spec.submodule_search_locations or [])


def _submodules(package: str, folders: list[str]) -> Iterator[str]:
    for module in pkgutil.iter_modules(folders):
        if module.name in ("__main__", "idle_test", "test", "tests"):
            continue
        yield f"{package}.{module.name}"
        if module.ispkg:
            inner = [os.path.join(folder, module.name) for folder in folders]
            yield from _submodules(f"{package}.{module.name}", inner)
