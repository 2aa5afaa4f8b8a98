"""The command that adds libraries fits the program that made the environment."""

import sys
from pathlib import Path

import pytest

from lmwire_protocol.extras import install_command


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "an environment"
    folder.mkdir()
    monkeypatch.setattr(sys, "prefix", str(folder))
    return folder


@pytest.mark.parametrize("config", [None, "home = /usr/bin\nversion = 3.13.1\n"])
def test_pip_adds_an_extra(environment: Path, config: str | None) -> None:
    if config:
        (environment / "pyvenv.cfg").write_text(config)
    assert install_command("http") == "pip install 'lmwire[http]'"


def test_uv_adds_an_extra_to_an_environment_of_its_own(environment: Path) -> None:
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.13.9\nversion_info = 3.13.1\n")
    assert install_command("http") == f"uv pip install --python '{environment}' 'lmwire[http]'"


def test_pipx_adds_an_extra_to_an_environment_of_its_own(environment: Path) -> None:
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (environment / "pipx_metadata.json").touch()
    assert install_command("http") == "pipx runpip lmwire install 'lmwire[http]'"
