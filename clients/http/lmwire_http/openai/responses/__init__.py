"""/v1/responses: answers that are kept for a while, so that a conversation goes on without being sent again."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from ...errors import ApiError
from ...http.context import Call
from ...http.endpoint import Endpoint
from ...http.replies import EventStream, Json, Reply
from .input_items import ItemList, list_items
from .request_schema import ResponseBody
from .response_generation import Answering, Exchanged
from .response_schema import Response
from .stream_events import AnyEvent


class Deleted(Struct, kw_only=True):
    """A response that is kept no longer."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


async def _create(call: Call, body: ResponseBody) -> Reply:
    answering = Answering(call, body)
    return EventStream(answering.frames()) if body.stream else Json(await answering.whole())


async def _get(call: Call, _: None) -> Reply:
    if call.query.get("stream", "false") == "true":
        raise ApiError(400, "stream: an answer streams once, when it is made; leave it out", code="invalid_value")
    return Json(_kept(call).response)


async def _delete(call: Call, _: None) -> Reply:
    id = _kept(call).response.id
    call.service.responses.drop(id)
    return Json(Deleted(id=id))


async def _input_items(call: Call, _: None) -> Reply:
    return Json(list_items(_kept(call).items, call.query))


def _kept(call: Call) -> Exchanged:
    id = call.path["id"]
    if (found := call.service.responses.get(id)) is None:
        raise ApiError(404, f"there is no response {id!r}, or none any more", code="response_not_found", param="id")
    return found


CREATE: Final = Endpoint(
    method="POST",
    path="/v1/responses",
    summary="Answer a conversation, and keep it to be continued.",
    serve=_create,
    body=ResponseBody,
    reply=Response,
    events=AnyEvent,
)
RESPONSES: Final[Sequence[Endpoint]] = (
    CREATE,
    Endpoint(method="GET", path="/v1/responses/{id}", summary="A response that was kept.", serve=_get, reply=Response),
    Endpoint(method="DELETE", path="/v1/responses/{id}", summary="Forget a response.", serve=_delete, reply=Deleted),
    Endpoint(
        method="GET",
        path="/v1/responses/{id}/input_items",
        summary="What a response answers.",
        serve=_input_items,
        reply=ItemList,
    ),
)
