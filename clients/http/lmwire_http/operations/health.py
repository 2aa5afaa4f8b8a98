"""Whether the server lives, and whether it can serve: for what restarts it, and for what sends it requests."""

from typing import Final, Literal

import msgspec

from ..call import Call
from ..endpoint import Endpoint
from ..replies import Json


class Health(msgspec.Struct):
    """The process lives."""

    status: Literal["ok"] = "ok"


async def _health(call: Call, _: None) -> Json:
    return Json(Health())


HEALTH: Final = Endpoint(
    method="GET", path="/health", summary="Whether the server's process lives.", serve=_health, reply=Health, open=True
)
