"""GET /health, whether the process is alive, and GET /ready, whether it can serve requests now."""

from typing import Literal

import msgspec

from ..http.context import RequestContext
from ..http.endpoint import Json, endpoint
from ..pool import LoadProgress


class Health(msgspec.Struct):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class Ready(msgspec.Struct, omit_defaults=True):
    """Readiness of the server. If it is not ready, the status is 503."""

    ready: bool
    reason: str | msgspec.UnsetType = msgspec.UNSET
    """Why the server is not ready."""
    load_progress: LoadProgress | msgspec.UnsetType = msgspec.UNSET
    """Progress of the load that the server waits for; absent if there is none."""


@endpoint("GET", "/health", response_type=Health, is_public=True)
async def get_health(context: RequestContext, _: None) -> Json:
    """Report that the server's process runs."""
    return Json(Health())


@endpoint("GET", "/ready", response_type=Ready, status_types={503: Ready}, is_public=True)
async def get_readiness(context: RequestContext, _: None) -> Json:
    """Report whether the server can serve requests now."""
    problem = await context.state.readiness.problem()
    if problem is None:
        return Json(Ready(ready=True))
    progress = context.state.pool.load_progress or msgspec.UNSET
    return Json(Ready(ready=False, reason=problem, load_progress=progress), 503)
