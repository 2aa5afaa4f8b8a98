"""GET /api/hello, which Claude Code sends first, to see whether the server is there."""

from typing import Final, Literal

from msgspec import Struct

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json
from ..http.error_formats import ANTHROPIC_ERRORS


class Hello(Struct):
    """The server is there."""

    message: Literal["hello"] = "hello"


async def _hello(context: RequestContext, _: None) -> Json:
    return Json(Hello())


HELLO: Final = Endpoint(
    method="GET",
    path="/api/hello",
    summary="Report that the server is there.",
    handler=_hello,
    error_format=ANTHROPIC_ERRORS,
    response_type=Hello,
    is_public=True,
)
