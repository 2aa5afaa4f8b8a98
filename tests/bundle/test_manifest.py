"""The manifest of a bundle lists its files, and `--check` names those that differ from it."""

import json
import os
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

from lmwire.cli.bundle.manifest import File, find_differences, read_manifest, write_manifest
from lmwire_protocol import __version__
from support.process.lmwire_command import lmwire


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a small folder with a manifest, as a bundle has it."""
    folder = tmp_path / "lmwire"
    (folder / "inner").mkdir(parents=True)
    (folder / "lmwire").write_text("a program")
    (folder / "lmwire").chmod(0o755)
    (folder / "inner" / "ß").write_text("data")
    (folder / "link").symlink_to("inner/ß")
    write_manifest(folder, ["worker"], [])
    return folder


def check(folder: Path) -> list[str]:
    return find_differences(folder, read_manifest(folder))


@pytest.mark.nightly
def test_a_bundles_manifest_has_versions_licences_and_files(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    assert (manifest["lmwire"], manifest["protocol"]) == (__version__, 1)
    versions = {package["name"]: package["version"] for package in manifest["packages"]}
    assert versions["mlx-lm"] == version("mlx-lm")
    assert "pytest" not in versions
    licences = {package["name"]: package["license"] for package in manifest["packages"]}
    assert licences["lmwire"] == "MIT"
    assert (bundle / "LICENSES" / "mlx-lm" / "LICENSE").read_text().startswith("MIT License")
    assert (bundle / "LICENSES" / "python").is_dir()
    assert [file["path"] for file in manifest["files"]] == sorted(file["path"] for file in manifest["files"])


@pytest.mark.nightly
def test_a_bundle_names_no_folder_of_the_machine_that_built_it(bundle: Path) -> None:
    """Not in its metadata, nor in compiled code, whose paths tracebacks show."""
    metadata = [file for file in bundle.rglob("*") if file.suffix == ".pyc" or ".dist-info" in str(file.parent)]
    assert len(metadata) > 1000
    needle = os.fsencode(Path(__file__).parents[2])
    assert [file for file in metadata if file.is_file() and needle in file.read_bytes()] == []


@pytest.mark.nightly
def test_a_bundle_is_intact(bundle: Path) -> None:
    done = lmwire("bundle", "--check", str(bundle))
    assert (done.returncode, done.stderr) == (0, "")
    assert "is intact" in done.stdout


@pytest.mark.slow
def test_each_difference_is_named(folder: Path) -> None:
    assert check(folder) == []
    (folder / "inner" / "ß").write_text("date")
    (folder / "new").touch()
    (folder / "lmwire").chmod(0o644)
    (folder / "link").unlink()
    done = lmwire("bundle", "--check", str(folder))
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        "inner/ß: has changed",
        "link: is missing",
        "lmwire: cannot be executed",
        "new: is not in the manifest",
    ]


def test_a_link_that_leads_elsewhere_has_changed(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc/hostname")
    assert check(folder) == ["link: has changed"]


def test_a_pipe_is_not_read(folder: Path) -> None:
    (folder / "inner" / "ß").unlink()
    os.mkfifo(folder / "inner" / "ß")
    assert check(folder) == ["inner/ß: has changed"]


def test_a_manifest_leads_to_no_file_outside_the_folder(folder: Path) -> None:
    manifest = read_manifest(folder)
    outside = File(path="../../etc/hostname", size=1, sha256="0")
    assert find_differences(folder, msgspec.structs.replace(manifest, files=[*manifest.files, outside])) == [
        "../../etc/hostname: is missing"
    ]


def test_the_same_files_have_the_same_manifest(folder: Path) -> None:
    before = (folder / "manifest.json").read_bytes()
    os.utime(folder / "lmwire", (1, 1))
    write_manifest(folder, ["worker"], [])
    assert (folder / "manifest.json").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "problem"),
    [("", "is damaged"), ('{"lmwire": 1}', "is damaged: Expected `str`, got `int` - at `$.lmwire`"), (None, "No such")],
)
def test_a_folder_without_a_whole_manifest_is_refused(folder: Path, content: str | None, problem: str) -> None:
    (folder / "manifest.json").unlink()
    if content is not None:
        (folder / "manifest.json").write_text(content)
    done = lmwire("bundle", "--check", str(folder))
    assert done.returncode == 1
    assert problem in done.stderr
