"""GET /api/version: with it and with GET /, clients find out whether Ollama's API is here."""

from typing import Final

from msgspec import Struct

from lmwire_protocol import __version__

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json
from ..http.error_formats import OLLAMA_ERRORS

API_VERSION: Final = "0.33.0"
"""The version of Ollama whose API this is. Clients refuse servers that are too old."""


class Version(Struct, kw_only=True):
    """The versions of the API and of the server."""

    version: str = API_VERSION
    lmwire: str = __version__


async def _version(_: RequestContext, __: None) -> Json:
    return Json(Version())


VERSION: Final = Endpoint(
    method="GET",
    path="/api/version",
    summary="Report the version of Ollama's API.",
    handler=_version,
    error_format=OLLAMA_ERRORS,
    response_type=Version,
    is_public=True,
)
