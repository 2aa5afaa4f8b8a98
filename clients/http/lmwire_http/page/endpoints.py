"""GET / and GET /page/{file}: the chat page for browsers, and Ollama's greeting for its clients."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ..errors import ApiError
from ..http.context import RequestContext
from ..http.endpoint import Plain, endpoint
from ..http.error_formats import OLLAMA_ERRORS

_FOLDER: Final = Path(__file__).with_name("static")
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_GREETING: Final = b"Ollama is running"
"""Ollama's own words, which its clients look for."""
_INDEX: Final = "index.html"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; media-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Everything comes from this server. Texts that become HTML or code are refused, whoever wrote them."""
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
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


@endpoint("GET", "/", error_format=OLLAMA_ERRORS, text_media_types=("text/plain", "text/html"), is_public=True)
async def serve_root(context: RequestContext, _: None) -> Plain:
    """Show the chat page, or report that the server runs, as Ollama does."""
    if not context.state.settings.page:
        return Plain(_GREETING)
    if "text/html" in context.headers.get("accept", ""):
        return _reply(context, static_files()[_INDEX])
    return Plain(_GREETING, headers={"vary": "accept"})


@endpoint(
    "GET",
    "/page/{file:path}",
    text_media_types=("text/javascript", "text/css", "image/svg+xml", "text/plain", "font/woff2"),
    error_statuses=(404,),
    is_public=True,
)
async def serve_file(context: RequestContext, _: None) -> Plain:
    """Return a file of the chat page."""
    file = static_files().get(context.path_params["file"]) if context.state.settings.page else None
    if file is None:
        raise ApiError(404, "the page has no such file; the page is at /", code="unknown_path")
    return _reply(context, file)


def _reply(context: RequestContext, file: StaticFile) -> Plain:
    """Return a file, compressed if the client takes that, or status 304 if the client has it."""
    accepted = [encoding.strip() for encoding in context.headers.get("accept-encoding", "").split(",")]
    is_compressed = "gzip" in accepted
    chosen = file.compressed if is_compressed else file.plain
    headers = {**_HEADERS, "etag": chosen.etag, "vary": "accept, accept-encoding"}
    if is_compressed:
        headers["content-encoding"] = "gzip"
    known = [tag.strip().removeprefix("W/") for tag in context.headers.get("if-none-match", "").split(",")]
    if chosen.etag in known or "*" in known:
        return Plain(b"", file.media_type, 304, headers)
    return Plain(chosen.content, file.media_type, headers=headers)
