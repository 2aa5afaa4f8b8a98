"""README's first block names what installs lmwire from a checkout: make, or pip alone."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.checkout import copy_checkout
from support.clients.installation import INSTALLATION_S
from support.markdown import first_block
from support.process.lmwire_command import REPOSITORY
from support.process.programs import refuse

README = REPOSITORY / "README.md"
OUT_OF_REACH = "NewConnectionError"
"""Word in the output of a pip that reaches no index."""


def commands(start: str) -> list[str]:
    """Return the lines of the first block that start so, without their comments."""
    lines = first_block("sh", README).splitlines()
    return [line.partition("  #")[0].strip() for line in lines if line.startswith(start)]


def test_the_block_has_a_line_of_pip_beside_those_of_make() -> None:
    assert commands("make ") == ["make chat", "make test"]
    assert commands("python3 ") == ["python3 -m venv .venv && . .venv/bin/activate"]
    assert commands("pip ") == ["pip install '.[cpu,chat,http]'"]
    assert commands("lmwire ") == ["lmwire chat -p hi"]


def test_every_extra_that_the_block_names_exists_and_a_mac_needs_no_backend() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"'\.\[(.+?)\]'", first_block("sh", README))
    assert {extra for extras in named for extra in extras.split(",")} <= set(project["optional-dependencies"])
    *others, mac = [set(extras.split(",")) for extras in named]
    on_mac = {re.split(r"[<>=]", line)[0] for line in project["dependencies"] if "darwin" in line}
    without = set.intersection(*others) - mac
    needed = {re.split(r"[<>=]", line)[0] for extra in without for line in project["optional-dependencies"][extra]}
    assert without == {"chat"} and needed <= on_mac and {"mlx", "mlx-lm"} <= on_mac


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="the line is for Linux")
def test_the_lines_of_pip_install_what_answers_in_a_fresh_environment(checkout: Path) -> None:
    """The newest versions that pyproject.toml allows are installed, as for a new user, and not the locked ones."""
    (venv,), (pip,), (chat,) = commands("python3 "), commands("pip "), commands("lmwire ")
    installed = run(f"{venv} && {pip}", checkout)
    if OUT_OF_REACH in installed.stderr:
        refuse("pip reaches no index")
    assert installed.returncode == 0, installed.stderr
    answered = run(f". .venv/bin/activate && {chat}", checkout)
    assert answered.returncode == 0 and answered.stdout.strip(), answered.stderr
    report = run(".venv/bin/lmwire doctor --offline --json", checkout).stdout
    found = {each["topic"]: each["level"] for each in json.loads(report)}
    assert [found[f"[{extra}]"] for extra in ("worker", "chat", "http")] == ["ok"] * 3


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """Yield a fresh checkout, and remove the environment in it afterwards, which is large."""
    copy_checkout(tmp_path)
    yield tmp_path
    shutil.rmtree(tmp_path / ".venv", ignore_errors=True)


def run(command: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a user types it in the checkout, with the Python of this test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LMWIRE_", "PYTHON"))}
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return subprocess.run(
        ["sh", "-c", command],
        cwd=checkout,
        env=kept | {"PATH": path, "XDG_CACHE_HOME": str(checkout / "cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALLATION_S,
        check=False,
    )
