"""Checks of the installation, which give findings: Python, packages, settings."""

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import lmwire_protocol
from lmwire_protocol.extras import WORKER_EXTRA, install_command

from ..arguments import load_config
from ..option_sources import InvalidConfigFile

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Level: TypeAlias = Literal["ok", "warn", "fail"]
NVIDIA_DRIVER: Final = Path("/proc/driver/nvidia")
_MINIMUM: Final = (3, 11)
_EXTRAS: Final = ("worker", "chat", "http", "vision")
"""The extras that people install, the necessary one first."""
_PREFIXES: Final = ("LMWIRE_", "HF_", "MLX_", "XDG_CACHE_HOME", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_SECRETS: Final = ("TOKEN", "KEY", "PROXY")
_SEARCH_PATHS: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    level: Level
    topic: str
    """The thing that was checked."""
    text: str
    fix: str | None = None
    """The way to mend it; None if nothing is wrong."""


def check_python() -> Finding:
    """Check the version of Python, and the processor."""
    text = (
        f"{platform.python_version()} on {platform.system()} {platform.machine()}; lmwire {lmwire_protocol.__version__}"
    )
    if sys.version_info < _MINIMUM:
        return Finding("fail", "Python", text, "install Python 3.11 or newer")
    if platform.system() == "Darwin" and platform.machine() != "arm64":
        fix = "use a Mac with Apple silicon, and a Python that is built for it (not one that Rosetta translates)"
        return Finding("fail", "Python", text, fix)
    return Finding("ok", "Python", text)


def check_packages() -> Iterator[Finding]:
    """Check the versions of the packages against the ranges that lmwire asks for, one extra after another."""
    try:
        from packaging.requirements import Requirement

        needed = [Requirement(text) for text in requires("lmwire") or []]
    except ImportError:  # of `packaging`, or a PackageNotFoundError
        fix = install_command(device_extra())
        yield Finding("fail", "packages", "the worker's packages are not installed", fix)
        return
    of_worker = {each.name for each in _packages_of("worker", needed)}
    for extra in _EXTRAS:
        own = [each for each in _packages_of(extra, needed) if extra == "worker" or each.name not in of_worker]
        yield _check_extra(extra, own)


def device_extra() -> str:
    """Return the extra with the libraries that run models on this machine's device."""
    return "cuda" if NVIDIA_DRIVER.exists() else WORKER_EXTRA


def _packages_of(extra: str, needed: "list[Requirement]") -> "list[Requirement]":
    """Return what an extra adds to lmwire itself."""
    own = [each for each in needed if each.marker and not each.marker.evaluate() and _applies(each, extra)]
    return [each for each in own if each.name != "lmwire"]


def _applies(requirement: "Requirement", extra: str) -> bool:
    return requirement.marker is not None and requirement.marker.evaluate({"extra": extra})


def _check_extra(extra: str, requirements: "list[Requirement]") -> Finding:
    """Return the finding about the packages of an extra."""
    installed = {each.name: installed_version(each.name) for each in requirements}
    topic, fix = f"[{extra}]", install_command(device_extra() if extra == "worker" else extra)
    missing = [name for name, found in installed.items() if found is None]
    wrong = [
        f"{each.name} {found} is not in {each.specifier}"
        for each in requirements
        if (found := installed[each.name]) and not each.specifier.contains(found, prereleases=True)
    ]
    if missing:
        wrong.append(f"not installed: {', '.join(missing)}")
    if wrong:
        return Finding("fail" if extra == "worker" else "warn", topic, "; ".join(wrong), fix)
    return Finding("ok", topic, ", ".join(f"{name} {found}" for name, found in installed.items()))


def installed_version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check_config() -> Finding:
    """Check the config file."""
    try:
        config = load_config(os.environ)
    except InvalidConfigFile as error:
        return Finding(
            "fail", "config file", str(error), "mend the file, or remove it; `lmwire config path` has its name"
        )
    tables = ", ".join(config.tables) if config.tables else "no options"
    return Finding("ok", "config file", tables)


def check_environment(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check the environment variables that have an effect here. Secrets are not shown.

    Args:
        environment: The variables.
    """
    shown = [
        f"{name}={'(hidden)' if any(word in name for word in _SECRETS) else value}"
        for name, value in sorted(environment.items())
        if name.startswith(_PREFIXES)
    ]
    yield Finding("ok", "environment", ", ".join(shown) or "no variable changes what lmwire does")
    for name in _SEARCH_PATHS:
        if not all(os.path.isabs(entry) for entry in environment.get(name, "/").split(os.pathsep)):
            problem = f"{name} has a relative or empty entry: Python imports modules from the current directory"
            yield Finding("warn", "environment", problem, f"write only absolute paths in {name}")
