"""GET /, and GET /api/version: with these, clients find out whether Ollama's API is here."""

from typing import Final

from msgspec import Struct

from lmwire_protocol import __version__

from ..http.context import RequestContext
from ..http.endpoint import Endpoint
from ..http.error_formats import OLLAMA_ERRORS
from ..http.replies import Json, Plain

API_VERSION: Final = "0.33.0"
"""The version of Ollama whose API this is. Clients refuse servers that are too old."""
_GREETING: Final = b"Ollama is running"
"""Ollama's own words, which clients look for."""


class Version(Struct, kw_only=True):
    """The versions of the API and of the server."""

    version: str = API_VERSION
    lmwire: str = __version__


async def _greet(_: RequestContext, __: None) -> Plain:
    return Plain(_GREETING)


async def _version(_: RequestContext, __: None) -> Json:
    return Json(Version())


ROOT: Final = Endpoint(
    method="GET",
    path="/",
    summary="Report that the server runs, as Ollama does.",
    handler=_greet,
    error_format=OLLAMA_ERRORS,
    text_media_types=("text/plain",),
    is_public=True,
)
VERSION: Final = Endpoint(
    method="GET",
    path="/api/version",
    summary="Report the version of Ollama's API.",
    handler=_version,
    error_format=OLLAMA_ERRORS,
    response_type=Version,
    is_public=True,
)
