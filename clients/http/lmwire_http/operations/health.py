"""Whether the server lives, and whether it can serve: for what restarts it, and for what sends it requests."""

from typing import Final, Literal

import msgspec

from ..http.context import Call
from ..http.endpoint import Endpoint
from ..http.replies import Json


class Health(msgspec.Struct):
    """The process lives."""

    status: Literal["ok"] = "ok"


class Ready(msgspec.Struct, omit_defaults=True):
    """Whether requests would be served now. With the status 503 they would not."""

    ready: bool
    reason: str | msgspec.UnsetType = msgspec.UNSET
    """Why not."""


async def _health(call: Call, _: None) -> Json:
    return Json(Health())


async def _ready(call: Call, _: None) -> Json:
    problem = await call.service.readiness.problem(call.service)
    return Json(Ready(ready=True)) if problem is None else Json(Ready(ready=False, reason=problem), 503)


HEALTH: Final = Endpoint(
    method="GET", path="/health", summary="Whether the server's process lives.", serve=_health, reply=Health, open=True
)
READY: Final = Endpoint(
    method="GET",
    path="/ready",
    summary="Whether requests would be served now.",
    serve=_ready,
    reply=Ready,
    statuses={503: Ready},
    open=True,
)
