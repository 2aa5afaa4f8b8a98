"""The manifest of a bundle: its versions, its packages, and the size and the digest of each file."""

import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

import msgspec

from lmwire_protocol import __version__
from lmwire_protocol.limits import PROTOCOL_VERSION

from ..errors import CliError
from .contents import canonical_name, declared_licence

NAME: Final = "manifest.json"
_MAX_BYTES: Final = 64 * 2**20
"""Maximum size of a manifest that is read."""


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """An installed package."""

    name: str
    version: str
    license: str | None
    """The licence that its metadata declares."""


class File(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file, or a link to one."""

    path: str
    """The path below the bundle's folder, with slashes."""
    size: int | None = None
    """Size in bytes. A link has none, and no digest."""
    sha256: str | None = None
    executable: bool = False
    link: str | None = None
    """Target of a link."""


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """The system that the bundle was built on. Older ones may lack what its libraries need."""

    system: str
    release: str
    """The version of macOS, or of the C library on Linux."""
    machine: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a bundle. No field is a time, and lists are sorted."""

    lmwire: str
    """lmwire's version."""
    protocol: int
    """The version of the protocol."""
    python: str
    platform: Platform
    extras: list[str]
    packages: list[Package]
    files: list[File]


def write_manifest(bundle: Path, extras: list[str], distributions: list[Distribution]) -> Manifest:
    """Describe a finished folder in its manifest, and return what was written.

    Args:
        bundle: The folder.
        extras: The extras of lmwire in it.
        distributions: The packages in it.
    """
    manifest = Manifest(
        lmwire=__version__,
        protocol=PROTOCOL_VERSION,
        python=platform.python_version(),
        platform=Platform(system=platform.system(), release=_system_release(), machine=platform.machine()),
        extras=extras,
        packages=[
            Package(name=canonical_name(package.name), version=package.version, license=declared_licence(package))
            for package in distributions
        ],
        files=list(_list_files(bundle)),
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (bundle / NAME).write_bytes(text + b"\n")
    return manifest


def read_manifest(bundle: Path) -> Manifest:
    """Return a bundle's manifest.

    Raises:
        CliError: There is none, or it is damaged.
    """
    path = bundle / NAME
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise CliError(f"{path} has over {_MAX_BYTES} bytes, so it is not a bundle's manifest")
        return msgspec.json.decode(content, type=Manifest)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}; name a folder that `lmwire bundle` made") from None
    except msgspec.MsgspecError as error:
        raise CliError(f"{path} is damaged: {error}") from None


def find_differences(bundle: Path, manifest: Manifest) -> list[str]:
    """Return a sentence for each file that is not as the manifest says, sorted by path.

    Only files in the folder are read, whatever paths a manifest has.

    Args:
        bundle: The bundle's folder.
        manifest: What it should consist of.
    """
    expected = {file.path: file for file in manifest.files}
    actual = {file.path: file for file in _list_files(bundle)}
    return [
        f"{path}: {_difference(expected.get(path), actual.get(path))}"
        for path in sorted(expected.keys() | actual.keys())
        if expected.get(path) != actual.get(path)
    ]


def _difference(expected: File | None, actual: File | None) -> str:
    if expected is None:
        return "is not in the manifest"
    if actual is None:
        return "is missing"
    if expected.executable and not actual.executable:
        return "cannot be executed"
    return "has changed"


def _list_files(bundle: Path) -> Iterator[File]:
    """Yield all files below a folder but the manifest, sorted by path. Links are not followed."""
    names = [
        os.path.relpath(os.path.join(folder, name), bundle).replace(os.sep, "/")
        for folder, folders, files in os.walk(bundle)
        for name in (*files, *folders)
        if name in files or os.path.islink(os.path.join(folder, name))
    ]
    for name in sorted(names):
        if name != NAME:
            yield _describe(bundle / name, name)


def _describe(path: Path, name: str) -> File:
    if path.is_symlink():
        return File(path=name, link=os.readlink(path))
    if not path.is_file():
        return File(path=name, link="(neither a file nor a link)")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        status = os.fstat(file.fileno())
    return File(path=name, size=status.st_size, sha256=digest, executable=bool(status.st_mode & 0o100))


def _system_release() -> str:
    return platform.mac_ver()[0] if sys.platform == "darwin" else " ".join(platform.libc_ver())
