"""Endpoints at /v1/responses: create, get, delete, and list the input of stored responses."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from ...errors import ApiError
from ...http.context import RequestContext
from ...http.endpoint import Endpoint, Json, Reply
from ...inference.options import SAMPLING_ALIASES, TEMPLATE_ALIASES, reasoning_aliases, renamed
from .input_items import ItemList, list_items
from .items import has_references
from .request_schema import ResponseRequest
from .response_generation import ResponseGeneration
from .response_schema import Response
from .stored_items import StoredResponse
from .stream_events import AnyEvent


class InputTokens(Struct, kw_only=True):
    """The length of a prompt."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


class Deleted(Struct, kw_only=True):
    """A deleted response."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


async def start_generation(context: RequestContext, body: ResponseRequest) -> ResponseGeneration:
    """Return the response that is being generated, with the stored items that its request takes."""
    # A short body may continue a conversation of megabytes.
    context.is_large |= body.previous_response_id is not None or has_references(body.input)
    return await context.beside_loop(ResponseGeneration, context, body)


async def _create(context: RequestContext, body: ResponseRequest) -> Reply:
    response = await start_generation(context, body)
    return response.stream() if body.stream else await response.whole()


async def _count_input_tokens(context: RequestContext, body: ResponseRequest) -> Reply:
    response = await start_generation(context, body)
    return Json(InputTokens(input_tokens=await response.count_tokens()))


async def _get(context: RequestContext, _: None) -> Reply:
    if context.query.get("stream", "false") == "true":
        raise ApiError(400, "stream: a stored response cannot be streamed; leave it out", code="invalid_value")
    return Json(_kept(context).response)


async def _delete(context: RequestContext, _: None) -> Reply:
    _kept(context)
    id = context.path_params["id"]
    context.state.response_store.delete(context.key, id)
    return Json(Deleted(id=id))


async def _input_items(context: RequestContext, _: None) -> Reply:
    return Json(list_items(_kept(context).input_items(), context.query))


def _kept(context: RequestContext) -> StoredResponse:
    id = context.path_params["id"]
    if (found := context.state.response_store.get(context.key, id)) is None:
        raise ApiError(404, f"there is no response {id!r}, or it was deleted", code="response_not_found", param="id")
    return found


CREATE: Final = Endpoint(
    method="POST",
    path="/v1/responses",
    summary="Answer a conversation, and store the response.",
    handler=_create,
    request_type=ResponseRequest,
    aliases={
        **SAMPLING_ALIASES,
        **TEMPLATE_ALIASES,
        **reasoning_aliases(lambda effort: {"reasoning": {"effort": effort}}),
        "max_tokens": renamed("max_output_tokens"),
        "max_completion_tokens": renamed("max_output_tokens"),
    },
    response_type=Response,
    event_type=AnyEvent,
)
RESPONSES: Final[Sequence[Endpoint]] = (
    CREATE,
    Endpoint(
        method="POST",
        path="/v1/responses/input_tokens",
        summary="Count the tokens of a conversation.",
        handler=_count_input_tokens,
        request_type=ResponseRequest,
        aliases=CREATE.aliases,
        response_type=InputTokens,
    ),
    Endpoint(
        method="GET",
        path="/v1/responses/{id}",
        summary="Return a stored response.",
        handler=_get,
        response_type=Response,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/responses/{id}",
        summary="Delete a stored response.",
        handler=_delete,
        response_type=Deleted,
    ),
    Endpoint(
        method="GET",
        path="/v1/responses/{id}/input_items",
        summary="List the input items of a stored response.",
        handler=_input_items,
        response_type=ItemList,
    ),
)
UNSUPPORTED_PATHS: Final[Mapping[str, str]] = {
    "/v1/responses/compact": "conversations are not compacted here; send a shorter one, or `truncation`: auto",
    "/v1/responses/{id}/cancel": "responses do not run in the background; close the connection to cancel one",
}
"""Paths of OpenAI's API that are not served, and what to do instead."""
