"""Clients are installed once, exactly as locked, and their absence is clear."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from support.clients import installation
from support.clients.installation import DEFINITIONS, install_once


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(installation, "INSTALLED", tmp_path)
    return tmp_path / "client"


def out_of_reach(folder: Path) -> None:
    raise subprocess.CalledProcessError(1, ["pip"], stderr="looking for it\nno connection\n")


def test_the_second_use_finds_the_first_installation(folder: Path) -> None:
    assert install_once("client", ["1"], Path.mkdir) == folder
    (folder / "program").touch()
    assert install_once("client", ["1"], out_of_reach) == folder
    assert (folder / "program").exists()


def test_another_definition_replaces_the_installation(folder: Path) -> None:
    install_once("client", ["1"], Path.mkdir)
    (folder / "program").touch()
    install_once("client", ["2"], Path.mkdir)
    assert not (folder / "program").exists()


def test_an_installation_that_was_broken_off_is_repeated(folder: Path) -> None:
    def break_off(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install_once("client", ["1"], break_off)
    assert (folder / "half").exists()
    install_once("client", ["1"], Path.mkdir)
    assert not (folder / "half").exists()


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_what_cannot_be_installed_skips_its_tests_but_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="client could not be installed: no connection"):
        install_once("client", ["1"], out_of_reach)
    with pytest.raises(outcome, match="client could not be installed"):
        install_once("client", ["1"], Path.mkdir)  # the same run does not wait for the registry again


def test_python_libraries_are_locked_with_hashes_and_without_hosts() -> None:
    for file in (DEFINITIONS / "requirements").glob("*.txt"):
        text = file.read_text()
        assert "://" not in text and "index-url" not in text, file.name
        packages = re.findall(r"^\w.*\\\n    --hash", text, flags=re.MULTILINE)
        assert len(packages) == len(re.findall(r"^\w[\w.-]*==", text, flags=re.MULTILINE)) > 0, file.name


def test_node_packages_are_locked_with_hashes_and_without_hosts() -> None:
    wanted = json.loads((DEFINITIONS / "package.json").read_text())["dependencies"]
    locked = json.loads((DEFINITIONS / "package-lock.json").read_text())["packages"]
    assert locked.pop("")["dependencies"] == wanted
    for name, package in locked.items():
        assert "resolved" not in package and package["integrity"].startswith("sha512-"), name
    for name, version in wanted.items():
        assert locked[f"node_modules/{name}"]["version"] == version
