"""One sentence for a library that is not installed, with the command that adds it to the environment."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmwire_protocol import extras
from lmwire_protocol.extras import install_command, installer, not_installed, worker_not_installed

REPOSITORY = Path(__file__).parents[2]
SOURCES = [file for folder in ("protocol", "worker", "clients") for file in (REPOSITORY / folder).rglob("*.py")]
OTHER_PROGRAMS = REPOSITORY / "clients/python/lmwire/cli/bench/programs"
"""Programs that the benchmarks measure and compile with. No extra has them."""


def test_the_sentence_names_the_library_and_the_command() -> None:
    assert not_installed("uvloop", "http") == "uvloop is not installed; install it with `pip install 'lmwire[http]'`"
    assert not_installed("shtab", None) == "shtab is not installed; install it with `pip install lmwire`"
    reads = not_installed("Pillow", "vision", purpose="reads images")
    assert reads == "Pillow, which reads images, is not installed; install it with `pip install 'lmwire[vision]'`"


@pytest.mark.parametrize(
    ("platform", "commands"),
    [
        ("darwin", "`pip install 'lmwire[worker]'`"),
        ("linux", "`pip install 'lmwire[cpu]'` (or `pip install 'lmwire[cuda]'` for an NVIDIA GPU)"),
    ],
)
def test_the_libraries_of_a_worker_depend_on_the_machine(
    monkeypatch: pytest.MonkeyPatch, platform: str, commands: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(extras, "WORKER_EXTRA", "worker" if platform == "darwin" else "cpu")
    assert worker_not_installed() == f"mlx-lm is not installed; install it with {commands}"


def test_no_other_file_has_a_sentence_of_its_own() -> None:
    found = {file.relative_to(REPOSITORY) for file in SOURCES if OTHER_PROGRAMS not in file.parents and writes(file)}
    # bridge.py stands alone: its test compares the sentences.
    assert found == {Path("protocol/lmwire_protocol/extras.py"), Path("worker/bridge.py")}


def writes(file: Path) -> bool:
    """Return whether a text of a program, other than its documentation, is about what is not installed."""
    return any("is not installed" in text or "pip install" in text for text in texts(ast.parse(file.read_text())))


def texts(tree: ast.Module) -> Iterator[str]:
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


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
    assert installer() == [sys.executable, "-P", "-m", "pip", "install"], "whichever pip is on PATH"


def test_uv_adds_an_extra_to_an_environment_of_its_own(environment: Path) -> None:
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.13.9\nversion_info = 3.13.1\n")
    assert install_command("http") == f"uv pip install --python '{environment}' 'lmwire[http]'"
    assert installer() == ["uv", "pip", "install", "--python", str(environment)]


def test_pipx_adds_an_extra_to_an_environment_of_its_own(environment: Path) -> None:
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (environment / "pipx_metadata.json").touch()
    assert install_command("http") == "pipx runpip lmwire install 'lmwire[http]'"


def test_another_pip_adds_an_extra_where_the_environment_has_none(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Homebrew's environments, and after `python -m venv --without-pip`."""
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    assert install_command("http") == f"python3 -m pip --python '{environment}' install 'lmwire[http]'"
