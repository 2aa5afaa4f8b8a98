"""GET /docs: a page that shows the OpenAPI document. It loads nothing from other servers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Plain

_FOLDER: Final = Path(__file__).with_name("docs_page")
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_HTML: Final = "text/html; charset=utf-8"
_CSS: Final = "text/css; charset=utf-8"
_JAVASCRIPT: Final = "text/javascript; charset=utf-8"


def _make_endpoint(path: str, file: str, media_type: str) -> Endpoint:
    async def serve(_: RequestContext, __: None) -> Plain:
        return Plain((_FOLDER / file).read_bytes(), media_type, headers=_HEADERS)

    return Endpoint(
        method="GET",
        path=path,
        summary="Show this API on a page." if path == "/docs" else "Return a part of the page at /docs.",
        handler=serve,
        text_media_types=(media_type,),
        is_public=True,
    )


DOCS: Final[Sequence[Endpoint]] = (
    _make_endpoint("/docs", "index.html", _HTML),
    _make_endpoint("/docs/docs.js", "docs.js", _JAVASCRIPT),
    _make_endpoint("/docs/schema.js", "schema.js", _JAVASCRIPT),
    _make_endpoint("/docs/docs.css", "docs.css", _CSS),
)
