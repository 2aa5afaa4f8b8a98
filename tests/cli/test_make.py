"""The make targets that a newcomer types first."""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS

CHAT_LOCK = REPOSITORY / "requirements.txt"
LOCK = REPOSITORY / "requirements-dev.txt"


def make(*arguments: str) -> str:
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS, check=True).stdout


@pytest.mark.slow
def test_make_alone_lists_every_target_and_what_it_does() -> None:
    listed = make()
    targets = re.findall(r"^([a-z-]+):.* ## ", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE)
    checks = {
        "test",
        "test-all",
        "check",
        "shake",
        "c",
        "go",
        "lua",
        "node",
        "rust",
        "apps",
        "conformance",
        "lint",
        "style",
    }
    expected = checks | {
        "help",
        "lint",
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


# Stands for Python: `-c` checks its version, `-m venv` makes an environment, and each of the two can fail. The pip of
# that environment writes its arguments to `installed`, unless it must fail.
PYTHON = """#!/bin/sh
case "$*" in
  "-m venv .venv")
    mkdir -p .venv/bin
    printf '#!/bin/sh\necho "$@" >> installed; test "$FAILS" != pip\n' > .venv/bin/python
    printf '#!/bin/sh\n' > .venv/bin/lmwire
    chmod +x .venv/bin/* ;;
esac
test "$FAILS" != "$2"
"""


@pytest.fixture
def set_up(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs make in a folder without an environment. It names what fails."""
    for file in (REPOSITORY / "Makefile", REPOSITORY / "pyproject.toml", CHAT_LOCK, LOCK):
        shutil.copy(file, tmp_path)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)

    def run(target: str, fails: str = "nothing") -> subprocess.CompletedProcess[str]:
        command = ["make", "--no-print-directory", target, "PYTHON=./python"]
        environment = {**os.environ, "FAILS": fails}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fails", "remedy"), [("venv", "install its module venv"), ("pip", "bring its index into reach")]
)
def test_a_set_up_that_fails_ends_with_the_remedy(fails: str, remedy: str, set_up, tmp_path: Path) -> None:
    done = set_up("chat", fails)
    assert done.returncode != 0
    *_, last, make_own = done.stderr.splitlines()
    assert remedy in last and make_own.startswith("make")  # within another make, its depth follows
    assert not list(tmp_path.glob(".venv/.set-up*"))


@pytest.mark.slow
def test_a_chat_installs_no_tools_and_development_adds_them_once(set_up, tmp_path: Path) -> None:
    def installed() -> list[str]:
        return re.findall(r"--requirement (\S+)|--(editable) \.", (tmp_path / "installed").read_text())

    chat = [("requirements.txt", ""), ("", "editable")]
    assert (set_up("chat").returncode, installed()) == (0, chat)
    assert (set_up("setup").returncode, installed()) == (0, [*chat, ("requirements-dev.txt", "")])
    for target in ("chat", "setup"):
        assert set_up(target).returncode == 0
    assert len(installed()) == 3


def pins(lock: Path) -> list[str]:
    """Return the packages of a lock, each with its version, its marker and its hashes."""
    return re.split(r"\n(?=\w)", lock.read_text().partition("make lock\n")[2].strip())


@pytest.mark.parametrize("lock", [CHAT_LOCK, LOCK], ids=lambda lock: lock.name)
def test_each_package_is_pinned_with_hashes(lock: Path) -> None:
    assert len(pins(lock)) > 50
    for pin in pins(lock):
        assert re.match(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin), pin
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", pin), pin


@pytest.mark.parametrize("lock", [CHAT_LOCK, LOCK], ids=lambda lock: lock.name)
def test_a_lock_names_no_registry(lock: Path) -> None:
    assert not re.search(r"://|index-url|find-links", lock.read_text())


def test_development_keeps_the_packages_of_a_chat_as_they_are() -> None:
    def versions(lock: Path) -> set[str]:
        return {re.split(r"[ ;\\]", pin)[0] for pin in pins(lock)}

    assert versions(CHAT_LOCK) < versions(LOCK)


@pytest.mark.parametrize(("lock", "extra"), [(CHAT_LOCK, "checkout"), (LOCK, "dev")])
def test_a_lock_holds_what_the_package_asks_for(lock: Path, extra: str) -> None:
    """Check for drift: a new dependency in pyproject.toml needs `make lock`."""
    pinned = {_normalized(name) for name in re.findall(r"^([\w.-]+)==", lock.read_text(), flags=re.MULTILINE)}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    extras = [extra]
    for each in extras:  # it grows by the extras that an extra names
        for requirement in project["project"]["optional-dependencies"][each]:
            own = re.match(r"lmwire\[(.+)\]", requirement)
            extras.extend(own.group(1).split(",") if own else [])
            asked.extend([] if own else [requirement])
    assert {_normalized(re.split(r"[^\w.-]", requirement)[0]) for requirement in asked} <= pinned


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
