"""The files of the chat page, with their media types and entity tags, as they are and compressed."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("static")
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Representation:
    """A file's content in one encoding."""

    content: bytes
    etag: str
    """Strong entity tag, from the content."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page."""

    media_type: str
    plain: Representation
    compressed: Representation
    """The content in gzip's format."""


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the files by their path below the page's folder. They are read and compressed once."""
    paths = (path for path in sorted(_FOLDER.rglob("*")) if path.suffix in _MEDIA_TYPES)
    return {path.relative_to(_FOLDER).as_posix(): _read(path) for path in paths}


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    compressed = gzip.compress(content, mtime=0)
    return StaticFile(_MEDIA_TYPES[path.suffix], _represent(content), _represent(compressed))


def _represent(content: bytes) -> Representation:
    return Representation(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
