"""The make targets that a newcomer types first."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS

LOCK = REPOSITORY / "requirements-dev.txt"


def make(*arguments: str) -> str:
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS, check=True).stdout


@pytest.mark.slow
def test_make_alone_lists_every_target_and_what_it_does() -> None:
    listed = make()
    targets = re.findall(r"^([a-z-]+):.* ## ", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE)
    checks = {"test", "test-all", "check", "shake", "go", "lua", "node", "rust", "apps", "conformance", "lint", "style"}
    expected = checks | {
        "help",
        "setup",
        "chat",
        "format",
        "schema",
        "traceability",
        "lock",
        "man",
        "docs",
        "dist",
        "wheel",
        "bench",
    }
    assert expected == set(targets)
    for target in targets:
        assert re.search(rf"^  make {target} +\w", listed, flags=re.MULTILINE)


# Stands for Python: `-c` checks its version, `-m venv` makes an environment, and each of the two can fail.
PYTHON = """#!/bin/sh
case "$*" in
  "-m venv .venv") mkdir -p .venv/bin && printf '#!/bin/sh\nexit 1\n' > .venv/bin/python && chmod +x .venv/bin/python ;;
esac
test "$FAILS" != "$2"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("fails", "remedy"), [("venv", "install its module venv"), ("", "bring its index into reach")])
def test_a_set_up_that_fails_ends_with_the_remedy(fails: str, remedy: str, tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements-dev.txt"):
        shutil.copy(REPOSITORY / name, tmp_path)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    command = ["make", "--no-print-directory", "chat", "PYTHON=./python"]
    environment = {**os.environ, "FAILS": fails}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode != 0
    *_, last, make_own = done.stderr.splitlines()
    assert remedy in last and make_own.startswith("make")  # within another make, its depth follows
    assert not (tmp_path / ".venv/.set-up").exists()


def test_each_development_package_is_pinned_with_hashes() -> None:
    pins = re.split(r"\n(?=\w)", LOCK.read_text().partition("make lock\n")[2].strip())
    assert len(pins) > 100
    for pin in pins:
        assert re.match(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin), pin
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", pin), pin


def test_the_lock_names_no_registry() -> None:
    assert not re.search(r"://|index-url|find-links", LOCK.read_text())


def test_the_lock_holds_what_the_package_asks_for() -> None:
    """Check for drift: a new dependency in pyproject.toml needs `make lock`."""
    pinned = {_normalized(name) for name in re.findall(r"^([\w.-]+)==", LOCK.read_text(), flags=re.MULTILINE)}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in ("worker", "vision", "chat", "http", "dev"):
        asked += extras[extra]
    names = {_normalized(re.split(r"[^\w.-]", requirement)[0]) for requirement in asked}
    assert names - {"lmwire"} <= pinned


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
