"""The wheel in a fresh environment: what someone has after `make wheel` and `pip install`."""

import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS

MAC = "; sys_platform == 'darwin' and platform_machine == 'arm64'"
LINUX_LINE = (
    "mlx-lm is not installed; install it with `pip install 'lmwire[cpu]'`"
    " (or `pip install 'lmwire[cuda]'` for an NVIDIA GPU)"
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield an environment with the wheel and what it needs on Linux, but without MLX."""
    folder = tmp_path_factory.mktemp("fresh")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "dist")]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True, timeout=SECONDS * 4)
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv")]
    install = [*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, timeout=SECONDS * 4)
    assert msgspec.__file__
    shutil.copytree(Path(msgspec.__file__).parent, site_packages(folder / "venv") / "msgspec")
    yield folder / "venv"
    shutil.rmtree(folder)


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def lmwire(environment: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(environment / "bin" / "lmwire"), *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS * 2, check=False
    )


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac gets MLX with lmwire itself")
def test_without_an_extra_the_commands_name_what_to_add(environment: Path) -> None:
    for arguments in (["chat", "-p", "hi"], ["pull", "owner/name"], ["models"]):
        result = lmwire(environment, *arguments)
        assert result.returncode == 1
        assert LINUX_LINE.partition("; ")[2] in result.stderr
    serve = lmwire(environment, "serve")
    assert "starlette is not installed; install it with `pip install 'lmwire[http]'`" in serve.stderr


def test_with_mlx_the_first_chat_answers(environment: Path) -> None:
    # A path file adds the libraries of the tests' environment after the wheel, which therefore wins.
    (site_packages(environment) / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    result = lmwire(environment, "chat", "-p", "Who are you?")
    assert result.returncode == 0, result.stderr
    assert "tiny model" in result.stdout


def test_a_mac_gets_what_its_extras_have() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [*project["optional-dependencies"]["worker"], *project["optional-dependencies"]["chat"]]
    for requirement in extras:
        assert requirement.partition(";")[0].strip() + MAC in project["dependencies"]
