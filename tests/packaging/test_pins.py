"""Pins by digest: of the actions of workflows, of base images, and of the libraries of the page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import vendor_page
from support.process.lmwire_command import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github").rglob("*.y*ml"))
MANIFESTS = sorted((REPOSITORY / "packaging").rglob("*.y*ml"))
IMAGE_FILES = sorted((REPOSITORY / "packaging").rglob("Dockerfile"))
OWN_IMAGE = "lmwire"
"""The image that a user builds from the Dockerfile."""


def values(key: str, node: Any) -> Iterator[Any]:
    """Yield the values of a key anywhere in a document."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from values(key, value)
    elif isinstance(node, list):
        for item in node:
            yield from values(key, item)


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=relative)
def test_each_action_is_a_commit_with_its_version_beside_it(workflow: Path) -> None:
    text = workflow.read_text()
    used = [*values("uses", yaml.safe_load(text))]
    assert used
    for action in [action for action in used if not action.startswith("./")]:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.search(rf"uses: {re.escape(action)} # v\d+\.\d+\.\d+$", text, flags=re.MULTILINE), action
    assert not [*values("container", yaml.safe_load(text)), *values("services", yaml.safe_load(text))]


@pytest.mark.parametrize("file", IMAGE_FILES, ids=relative)
def test_each_base_image_has_a_digest(file: Path) -> None:
    stages: set[str] = set()
    for image, name in re.findall(r"^FROM +(?:--\S+ +)*(\S+)(?: +AS +(\S+))?", file.read_text(), re.MULTILINE | re.I):
        assert image in stages or is_pinned(image), image
        stages.add(name)
    assert stages
    for image in re.findall(r"^COPY +--from=(\S+)", file.read_text(), re.MULTILINE | re.I):
        assert image in stages or is_pinned(image), image


@pytest.mark.parametrize("file", MANIFESTS, ids=relative)
def test_each_image_that_is_run_has_a_digest(file: Path) -> None:
    images = [image for document in yaml.safe_load_all(file.read_text()) for image in values("image", document)]
    assert images
    for image in images:
        assert image.partition(":")[0] == OWN_IMAGE or is_pinned(image), image


def is_pinned(image: str) -> bool:
    """Return whether an image has a tag for people and a digest."""
    return bool(re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image))


def test_the_libraries_of_the_page_are_those_that_were_vendored() -> None:
    assert vendor_page.changed_files() == []
    vendored = {file.name for file in vendor_page.FOLDER.iterdir()}
    assert vendored == {name for each in vendor_page.LIBRARIES for name in each.files.values()} | {"LICENSES.txt"}
    for library in vendor_page.LIBRARIES:
        assert re.fullmatch(r"[0-9a-f]{64}", library.sha256)


@pytest.mark.parametrize("change", ["changed", "added", "removed"])
def test_a_library_that_was_changed_is_named(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "vendor"
    folder.mkdir()
    (folder / "a.js").write_text("a")
    manifest = tmp_path / "manifest"
    monkeypatch.setattr(vendor_page, "_ROOT", tmp_path)
    monkeypatch.setattr(vendor_page, "FOLDER", folder)
    monkeypatch.setattr(vendor_page, "MANIFEST", manifest)
    manifest.write_text("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  vendor/a.js\n")
    assert vendor_page.changed_files() == []
    if change == "removed":
        (folder / "a.js").unlink()
    else:
        (folder / ("a.js" if change == "changed" else "b.js")).write_text("other")
    assert set(vendor_page.changed_files()) == {"vendor/b.js" if change == "added" else "vendor/a.js"}


@pytest.mark.slow
def test_another_package_than_the_known_one_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "preact.tgz").write_bytes(b"another package")

    class Packed:
        """The result of `npm pack`."""

        stdout = "preact.tgz\n"

    monkeypatch.setattr(vendor_page.subprocess, "run", lambda *_, **__: Packed())
    with pytest.raises(SystemExit, match=r"preact\.tgz has the digest "):
        vendor_page.unpack(vendor_page.LIBRARIES[0], tmp_path)
