"""The source archive, and the wheel that is built from it alone, in a fresh environment.

For each commit only the archive's content is checked, which a new file changes. The wheel and its environment are built
at night.
"""

import gzip
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest
from hatchling.builders.sdist import SdistBuilder

from support.clients.installation import uvx
from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS
from support.wheels import build_wheel

MAC = "; sys_platform == 'darwin' and platform_machine == 'arm64'"
LARGE = 500_000
EMPTY_OR_IGNORING = {".gitkeep", ".gitignore"}
STRAY = {"__pycache__", "node_modules", "dist", "build", "target", "tests"}
LINUX_LINE = (
    "mlx-lm is not installed; install it with `pip install 'lmwire[cpu]'`"
    " (or `pip install 'lmwire[cuda]'` for an NVIDIA GPU)"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the unpacked source archive."""
    folder = tmp_path_factory.mktemp("source")
    with pytest.MonkeyPatch.context() as patch:
        # The usual level 9 takes 12 s of computation for the built-in model.
        patch.setattr(gzip, "GzipFile", partial(gzip.GzipFile, compresslevel=1))
        (archive,) = SdistBuilder(str(REPOSITORY)).build(directory=str(folder))
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    yield Path(archive.removesuffix(".tar.gz"))
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    """Return the wheel that the source archive makes."""
    return build_wheel(source, source.with_name("dist"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield an environment with the wheel and what it needs on Linux, but without MLX."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder)]
    install = [*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, timeout=SECONDS * 4)
    assert msgspec.__file__
    shutil.copytree(Path(msgspec.__file__).parent, site_packages(folder) / "msgspec")
    yield folder
    shutil.rmtree(folder)


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def lmwire(environment: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run([str(environment / "bin" / "lmwire"), *arguments])


def run(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS * 2, check=False
    )


@pytest.mark.slow
def test_the_source_archive_holds_what_a_wheel_is_made_of_and_nothing_stray(source: Path) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    added = {"PKG-INFO", "pyproject.toml", ".gitignore", "README.md", "LICENSE"}
    assert {path.name for path in source.iterdir()} == {Path(path).parts[0] for path in included} | added
    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    for file in files:
        assert file.name in EMPTY_OR_IGNORING or not any(part.startswith(".") for part in file.parts), file
        assert STRAY.isdisjoint(file.parts), file
        assert file.suffix not in {".pyc", ".whl", ".gz", ".log"}, file
    (model,) = [file for file in files if file.suffix == ".safetensors" or (source / file).stat().st_size > LARGE]
    assert model.parent == Path("worker/lmwire_worker/builtin/tiny")


@pytest.mark.nightly
def test_the_source_archive_makes_the_same_wheel_as_the_checkout(wheel: Path, tmp_path: Path) -> None:
    ours, other = (contents(each) for each in (wheel, build_wheel(REPOSITORY, tmp_path)))
    assert ours.keys() == other.keys()
    assert [name for name in ours if ours[name] != other[name]] == []


def contents(wheel: Path) -> dict[str, tuple[int, int, int]]:
    """Return the size, checksum and permissions of each file of a wheel."""
    with ZipFile(wheel) as opened:
        return {each.filename: (each.file_size, each.CRC, each.external_attr) for each in opened.infolist()}


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac gets MLX with lmwire itself")
def test_without_an_extra_the_commands_name_what_to_add(environment: Path) -> None:
    for arguments in (["chat", "-p", "hi"], ["pull", "owner/name"], ["models"]):
        result = lmwire(environment, *arguments)
        assert result.returncode == 1
        assert LINUX_LINE.partition("; ")[2] in result.stderr
    serve = lmwire(environment, "serve")
    assert "starlette is not installed; install it with `pip install 'lmwire[http]'`" in serve.stderr


@pytest.mark.nightly
def test_with_mlx_the_first_chat_answers(environment: Path) -> None:
    # A path file adds the libraries of the tests' environment after the wheel, which therefore wins.
    (site_packages(environment) / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    result = lmwire(environment, "chat", "-p", "Who are you?")
    assert result.returncode == 0, result.stderr
    assert "tiny model" in result.stdout


@pytest.mark.nightly
def test_uvx_runs_the_wheel_and_the_first_chat_answers(wheel: Path) -> None:
    command, env = uvx(wheel, "" if sys.platform == "darwin" else "[cpu]")
    try:
        result = run([*command, "chat", "-p", "Who are you?"], env)
        assert result.returncode == 0, result.stderr
        assert "tiny model" in result.stdout
    finally:
        # The cache would keep each wheel and its environment.
        for arguments in (["clean", "lmwire"], ["prune"]):
            subprocess.run([command[0].removesuffix("x"), "--quiet", "cache", *arguments], env=env, check=True)


def test_a_mac_gets_what_its_extras_have() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [*project["optional-dependencies"]["worker"], *project["optional-dependencies"]["chat"]]
    for requirement in extras:
        assert requirement.partition(";")[0].strip() + MAC in project["dependencies"]
