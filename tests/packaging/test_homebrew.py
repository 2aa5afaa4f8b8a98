"""The Homebrew formula that tools/homebrew_formula.py writes."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from support.process.lmwire_command import REPOSITORY
from support.process.programs import program
from support.process.worker_process import SECONDS

METADATA = """\
Metadata-Version: 2.4
Name: lmwire
Version: 1.2.3
Summary: A summary
License-Expression: MIT
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dist") / "lmwire-1.2.3-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("lmwire-1.2.3.dist-info/METADATA", METADATA)
    return path


@pytest.fixture(scope="module")
def formula(wheel: Path) -> str:
    command = [sys.executable, str(REPOSITORY / "tools" / "homebrew_formula.py"), str(wheel)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout


def test_the_formula_installs_this_wheel_from_the_release_of_its_version(formula: str, wheel: Path) -> None:
    assert f"/releases/download/v1.2.3/{wheel.name}" in formula
    assert f'sha256 "{hashlib.sha256(wheel.read_bytes()).hexdigest()}"' in formula
    assert 'desc "A summary"' in formula
    assert 'license "MIT"' in formula
    assert not re.search(r"\$\w", formula)


def test_the_formula_is_ruby(formula: str) -> None:
    checked = subprocess.run(
        [program("ruby"), "-c"], input=formula, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert checked.returncode == 0, checked.stderr
