"""The Homebrew formula that tools/homebrew_formula.py writes: checked as `brew audit` does, installed and tested.

homebrew.rb stands in for Homebrew, and installs a wheel of this checkout without its dependencies. The installed
program finds those in the tests' environment. The installation runs at night; the formula itself is checked for each
commit.
"""

import hashlib
import json
import os
import plistlib
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.licenses import canonicalize_license_expression
from packaging.specifiers import SpecifierSet

from lmwire.cli.service import launchd
from support.http.raw_http import asked
from support.process.lmwire_command import REPOSITORY
from support.process.programs import program
from support.process.worker_process import SECONDS
from support.wheels import build_wheel

pytestmark = pytest.mark.slow

LONGEST_DESCRIPTION = 80
LONGEST_LINE = 118
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": sysconfig.get_path("purelib"),
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_COMPILE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "LMWIRE_SERVE_PORT": "0",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(REPOSITORY, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def formula(wheel: Path) -> Path:
    command = [sys.executable, str(REPOSITORY / "tools" / "homebrew_formula.py"), str(wheel)]
    written = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    file = wheel.with_name("lmwire.rb")
    file.write_text(written.stdout)
    return file


@pytest.fixture(scope="module")
def stanzas(formula: Path, wheel: Path) -> dict[str, Any]:
    shown = homebrew("show", formula, wheel)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


@pytest.fixture(scope="module")
def installed(formula: Path, wheel: Path) -> Path:
    """Return Homebrew's prefix with the formula installed."""
    result = homebrew("install", formula, wheel)
    assert result.returncode == 0, result.stderr
    return prefix(wheel)


def homebrew(phase: str, formula: Path, wheel: Path) -> subprocess.CompletedProcess[str]:
    """Run a phase of the formula: `show`, `install` or `test`.

    Args:
        phase: The phase.
        formula: The formula's file.
        wheel: What the formula's URL would download. Homebrew's prefix is beside it.
    """
    script = Path(__file__).with_name("homebrew.rb")
    command = [program("ruby"), script, phase, formula, prefix(wheel), sys.executable, wheel]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS * 4, check=False)


def prefix(wheel: Path) -> Path:
    return wheel.with_name("homebrew")


def changed(formula: Path, right: str, wrong: str, folder: Path) -> Path:
    """Return a copy of the formula with one mistake."""
    text = formula.read_text()
    assert right in text
    file = folder / formula.name
    file.write_text(text.replace(right, wrong))
    return file


def test_the_formula_installs_this_wheel_from_the_release_of_its_version(stanzas: dict[str, Any], wheel: Path) -> None:
    assert wheel.name == f"lmwire-{stanzas['version']}-py3-none-any.whl"
    assert stanzas["url"].endswith(f"/releases/download/v{stanzas['version']}/{wheel.name}")
    assert stanzas["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_the_formula_has_no_placeholder_left_and_no_long_line(formula: Path) -> None:
    text = formula.read_text()
    assert not re.search(r"\$\w", text)
    assert all(len(line) <= LONGEST_LINE or line.startswith("  url ") for line in text.splitlines())


def test_the_description_follows_the_rules_of_homebrew(stanzas: dict[str, Any]) -> None:
    assert len(stanzas["desc"]) <= LONGEST_DESCRIPTION
    assert re.match(r"(?!(The|An?|Lmwire)\b)[A-Z].*[^.\s]$", stanzas["desc"])


def test_the_homepage_is_secure_and_the_license_has_its_spdx_name(stanzas: dict[str, Any]) -> None:
    assert stanzas["homepage"].startswith("https://")
    assert stanzas["license"] == canonicalize_license_expression(stanzas["license"])


def test_it_depends_on_a_python_that_lmwire_supports(stanzas: dict[str, Any]) -> None:
    (python,) = [each for each in stanzas["depends_on"] if isinstance(each, str)]
    assert python.removeprefix("python@") in SpecifierSet(PROJECT["requires-python"])


def test_the_extras_that_it_installs_exist(formula: Path) -> None:
    (extras,) = re.findall(r"wheel}\[(.*?)\]", formula.read_text())
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ('license "', 'licence "', "undefined method"),
        ("class Lmwire", "class Other", "uninitialized constant Lmwire"),
        (":interactive", ":quick", "quick is no process type"),
        (", using: :nounzip", "", "missing keyword"),
        ("macos: :sonoma", ":mac", "unknown: mac"),
        ("system_site_packages: false", "without_pip: false", "Homebrew refuses without_pip"),
        ('virtualenv_create(libexec, "python3.13"', 'virtualenv_create(libexec, "python3.99"', "python3.99"),
    ],
)
def test_what_homebrew_refuses_is_refused_here(
    formula: Path, wheel: Path, tmp_path: Path, right: str, wrong: str, problem: str
) -> None:
    file = changed(formula, right, wrong, tmp_path)
    result = homebrew("show", file, wheel)
    if result.returncode == 0:
        result = homebrew("install", file, wheel)
    assert result.returncode != 0
    assert problem in result.stderr


@pytest.mark.nightly
def test_the_installation_has_the_command_its_manual_pages_and_completions(installed: Path) -> None:
    package = installed / "opt/lmwire"
    assert os.access(package / "bin/lmwire", os.X_OK)
    assert "lmwire serve" in (package / "share/man/man1/lmwire-serve.1").read_text()
    for completion in (
        "etc/bash_completion.d/lmwire",
        "share/zsh/site-functions/_lmwire",
        "share/fish/vendor_completions.d/lmwire.fish",
    ):
        assert "lmwire" in (package / completion).read_text()


@pytest.mark.nightly
@pytest.mark.usefixtures("installed")
def test_its_test_passes(formula: Path, wheel: Path) -> None:
    result = homebrew("test", formula, wheel)
    assert result.returncode == 0, result.stderr


@pytest.mark.nightly
@pytest.mark.usefixtures("installed")
def test_its_test_fails_for_another_version(formula: Path, wheel: Path, tmp_path: Path) -> None:
    result = homebrew("test", changed(formula, "version.to_s", '"9.9.9"', tmp_path), wheel)
    assert result.returncode != 0
    assert "does not match /9" in result.stderr


@pytest.mark.nightly
@pytest.mark.usefixtures("installed")
def test_its_service_starts_the_server(stanzas: dict[str, Any], tmp_path: Path) -> None:
    with subprocess.Popen(
        stanzas["service"]["run"], env=ENVIRONMENT | {"HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr
        try:
            (url,) = next(found for line in server.stderr if (found := re.findall(r'serves on ([^\s"]+)', line)))
            assert asked(url, "GET", "/health").status == 200
        finally:
            server.terminate()
        server.stderr.read()
    assert server.returncode == 0


def test_its_service_runs_as_that_of_lmwire_service_does(stanzas: dict[str, Any], wheel: Path) -> None:
    agent = plistlib.loads(launchd.agent_file([]))
    service = stanzas["service"]
    for key in ("KeepAlive", "ProcessType", "ExitTimeOut"):
        assert service[key] == agent[key]
    for key in ("StandardOutPath", "StandardErrorPath"):
        assert service[key] == f"{prefix(wheel)}/var/log/{Path(agent[key]).name}"
