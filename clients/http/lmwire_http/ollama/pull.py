"""POST /api/pull: makes sure that a model is on this machine."""

import os
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from ..errors import ApiError
from ..http.context import RequestContext
from ..http.endpoint import Json, LineStream, Reply, endpoint
from ..http.error_formats import OLLAMA_ERRORS
from ..inference.generation import lease_worker
from ..inference.options import renamed
from .request import without_tag


class PullRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of /api/pull."""

    model: str
    stream: bool | None = None
    """True if absent."""
    insecure: bool | None = None
    """Ignored, as in Ollama."""


class PullStatus(Struct, kw_only=True):
    """A step of the download."""

    status: str


@endpoint(
    "POST",
    "/api/pull",
    error_format=OLLAMA_ERRORS,
    aliases={"name": renamed("model")},
    takes_curl_type=True,
    response_type=PullStatus,
    line_type=PullStatus,
)
async def pull_model(context: RequestContext, body: PullRequest) -> Reply:
    """Make sure that a model is on this machine."""
    if body.stream is not False:
        return LineStream(_statuses(context, without_tag(body.model)))
    last = [line async for line in _statuses(context, without_tag(body.model))][-1]
    return Json(msgspec.json.decode(last, type=PullStatus))


async def _statuses(context: RequestContext, name: str) -> AsyncIterator[bytes]:
    """Yield the lines of the response. A model that is not on this machine is loaded, which downloads it."""
    try:
        served = await context.state.pool.served_model(name)
    except ApiError as error:
        error.message += "; start `lmwire serve` with the model's name, or with --download for every model of the hub"
        raise
    context.model = served.id
    yield _line("pulling manifest")
    if not os.path.isdir(served.path):
        async with lease_worker(context, name, rename=lambda _: "model"):
            pass
    yield _line("success")


def _line(status: str) -> bytes:
    return msgspec.json.encode(PullStatus(status=status)) + b"\n"
