"""`lmwire bundle` chooses packages, and refuses what it cannot build."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from lmwire.cli.bundle import contents
from lmwire.cli.bundle.bundled_program import prepare_environment
from lmwire.cli.bundle.contents import default_extras, required_distributions
from lmwire.cli.errors import CliError
from support.process.lmwire_command import lmwire

MACHINE = "worker" if sys.platform == "darwin" else "cpu"


def names(*extras: str) -> set[str]:
    return {contents.canonical_name(package.name) for package in required_distributions(extras)}


def test_the_packages_are_those_of_the_extras() -> None:
    text, seeing = names(MACHINE), names(MACHINE, "vision", "http")
    assert {"lmwire", "mlx", "mlx-lm", "transformers", "llguidance", "numpy"} <= text
    assert {"mlx-vlm", "starlette", "pytest", "pyinstaller"}.isdisjoint(text)
    assert {"mlx-vlm", "mlx-audio", "pillow", "starlette"} <= seeing


def test_packages_that_no_answer_needs_are_left_out() -> None:
    """mlx-vlm requires `datasets` to train models, which requires pyarrow and pandas."""
    assert {"datasets", "pyarrow", "pandas"}.isdisjoint(names("vision"))


def test_a_worker_always_has_what_runs_models_on_this_machine() -> None:
    assert default_extras([]) == [MACHINE]
    assert default_extras(["vision", "http"]) == sorted(["vision", "http", MACHINE])
    assert default_extras(["cuda"]) == ["cuda"]


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(name: str) -> metadata.Distribution:
        if name == "mlx-vlm":
            raise metadata.PackageNotFoundError(name)
        return metadata.distribution(name)

    monkeypatch.setattr(contents, "distribution", installed)
    with pytest.raises(CliError, match=r"--extra vision: mlx-vlm is not installed; install it"):
        required_distributions(["vision"])


@pytest.mark.slow
def test_an_extra_that_does_not_exist_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    done = lmwire("bundle", str(tmp_path / "lmwire"), "--extra", "visions")
    assert done.returncode == 64
    assert "name one of aac, chat, cpu, cuda, http" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_exists_is_not_overwritten(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "lmwire"
    if kind == "folder":
        target.mkdir()
        (target / "mine").touch()
    elif kind == "file":
        target.touch()
    else:
        target.symlink_to(tmp_path)
    done = lmwire("bundle", str(target))
    assert done.returncode == 64
    assert "name a folder that does not exist" in done.stderr or "name one that does not exist" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["lmwire"]


def build_without_pyinstaller(target: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command with a PyInstaller that fails, up to the point where the program is built."""
    package = target.parent / "path" / "PyInstaller"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("raise SystemExit('no space left')")
    return lmwire("bundle", str(target / "lmwire"), *options, PYTHONPATH=str(package.parent))


@pytest.mark.slow
def test_a_build_that_fails_shows_why_and_leaves_nothing(tmp_path: Path) -> None:
    done = build_without_pyinstaller(tmp_path / "out")
    assert done.returncode == 1
    assert "PyInstaller failed with exit code 1:\nno space left" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_the_packages_of_an_extra_are_included_if_it_is_named(tmp_path: Path) -> None:
    done = build_without_pyinstaller(tmp_path / "out", "--extra", "vision", "--extra", "http")
    packages = done.stderr.splitlines()[0].partition("packages: ")[2].split(", ")
    assert {"mlx-vlm", "starlette", "mlx-lm"} <= set(packages)


def test_other_programs_do_not_get_the_bundles_libraries(tmp_path: Path) -> None:
    changed = {"LD_LIBRARY_PATH": "/bundle", "LD_LIBRARY_PATH_ORIG": "/users", "_PYI_ARCHIVE_FILE": "x", "A": "1"}
    prepare_environment(changed, certificates=())
    assert changed == {"LD_LIBRARY_PATH": "/users", "A": "1"}


def test_the_systems_certificates_are_used_unless_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "certificates").touch()
    places = (str(tmp_path / "elsewhere"), str(tmp_path / "certificates"))
    for named, expected in (({}, {"SSL_CERT_FILE": places[1]}), ({"SSL_CERT_DIR": "/mine"}, {"SSL_CERT_DIR": "/mine"})):
        environment = dict(named)
        prepare_environment(environment, places)
        assert environment == expected
