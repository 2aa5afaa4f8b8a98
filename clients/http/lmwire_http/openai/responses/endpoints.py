"""Endpoints at /v1/responses: create, get, delete, and list the input of stored responses."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

from msgspec import Struct

from ...errors import ApiError
from ...http.context import RequestContext
from ...http.endpoint import Endpoint, EventStream, Json, Reply, Streamable, endpoint
from ...http.sse import WaitingEvent
from ...inference.call_ids import OPENAI_PREFIX, restore_call_ids
from ...inference.chat import count_prompt_tokens, run_chat
from ...inference.generation import Generation
from ...inference.options import TEMPLATE_ALIASES, TEXT_ALIASES, reasoning_aliases, renamed
from .conversation import Conversation
from .items import AdditionalTools, InputItem, assign_ids, has_references, read_items
from .request import ResponseRequest, chat_options, client_field
from .response import Response, fail_response, finish_response, is_incomplete, new_response
from .store import ItemList, StoredItems, StoredResponse, list_items
from .stream import AnyEvent, Event, EventEncoder, OutputBuilder, ResponseCompleted, ResponseFailed, ResponseIncomplete
from .tools import Tool, ToolSet, read_choice, read_tools


class ResponseGeneration(Streamable[ResponseRequest]):
    """A response that is being generated."""

    def __init__(self, context: RequestContext, body: ResponseRequest) -> None:
        super().__init__(context, body)
        tools = read_tools(body.tools or [], context.unknown_fields)
        choice = None if body.tool_choice is None else read_choice(body.tool_choice, context.unknown_fields)
        self._stored = StoredItems(context.state.response_store, context.key, body.previous_response_id)
        items = [
            self._stored.resolve(item, number)
            for number, item in enumerate(read_items(body.input, context.unknown_fields))
        ]
        self._tools = ToolSet({"tools": tools, **_additional_tools(self._stored.earlier, items)}, choice)
        self._options: Any = chat_options(body, self._tools)
        self._conversation = Conversation(body.instructions, self._stored.earlier, items)
        restore_call_ids(self._conversation.messages, OPENAI_PREFIX)
        self._items = [item for item in items if item is not None]
        self._output = OutputBuilder(self._tools)
        self._response = new_response(body, tools, choice)
        self._events = EventEncoder(self._response)
        self.waiting = WaitingEvent(self._events.encode_waiting)

    async def whole(self) -> Json:
        """Return the whole response."""
        async with self._generation() as generation:
            async for batch in generation:
                for _ in self._output.add(batch):
                    pass
            return Json(self._end(generation)[0])

    def stream(self) -> EventStream:
        """Return the stream of the response's events, which an error ends with the output so far."""
        return EventStream(self.frames(), self.waiting, self._encode_error)

    async def count_tokens(self) -> int:
        """Return the number of tokens in the prompt, without generating."""
        return await count_prompt_tokens(
            self._context, self._body.model, self._conversation.messages, self._options, rename=self._rename
        )

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the response's events as they come."""
        async with self._generation() as generation:
            async for batch in generation:
                if frames := self._events.encode([*self._output.add(batch)]):
                    yield frames
            response, last = self._end(generation)
        ended = ResponseCompleted if response.status == "completed" else ResponseIncomplete
        yield self._events.encode([*last, ended(response=response)])

    def _encode_error(self, error: ApiError) -> bytes:
        """Return the events that end a stream with an error, with the output so far."""
        last = [*self._output.end("incomplete")]
        failed = fail_response(self._response, self._output.items, error, self._context.id)
        return self._events.encode([*last, ResponseFailed(response=failed)])

    @asynccontextmanager
    async def _generation(self) -> AsyncGenerator[Generation]:
        async with run_chat(
            self._context,
            self._body.model,
            self._conversation.messages,
            self._options,
            rename=self._rename,
            checks_media=self._body.strict_media is not False,
        ) as generation:
            self._response.temperature = generation.options["temperature"]
            self._response.top_p = generation.options.get("top_p", 1.0)
            yield generation

    def _rename(self, field: str) -> str:
        found = self._conversation.client_field(field) or self._tools.client_field(field)
        return found or client_field(self._body, field)

    def _end(self, generation: Generation) -> tuple[Response, list[Event]]:
        """Store the response if the request asks for it. Return it with the last events of its items."""
        last = [*self._output.end("incomplete" if is_incomplete(generation.result) else "completed")]
        response = finish_response(self._response, self._output.items, generation.result)
        if response.store:
            self._stored.keep(response, self._items, assign_ids(self._items))
        return response, last


def _additional_tools(
    earlier: Sequence[InputItem], items: Sequence[InputItem | None]
) -> dict[str, Sequence[Tool | None]]:
    """Return the tools that items of the conversation offer, by their paths in the request."""
    found = {
        f"input[{place}].tools": item.tools for place, item in enumerate(items) if isinstance(item, AdditionalTools)
    }
    stored = [tool for item in earlier if isinstance(item, AdditionalTools) for tool in item.tools]
    return {"previous_response_id.tools": stored, **found}


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


@endpoint(
    "POST",
    "/v1/responses",
    aliases={
        **TEXT_ALIASES,
        **TEMPLATE_ALIASES,
        **reasoning_aliases(lambda effort: {"reasoning": {"effort": effort}}),
        "max_tokens": renamed("max_output_tokens"),
        "max_completion_tokens": renamed("max_output_tokens"),
    },
    response_type=Response,
    event_type=AnyEvent,
)
async def create_response(context: RequestContext, body: ResponseRequest) -> Reply:
    """Answer a conversation, and store the response."""
    response = await start_generation(context, body)
    return await response.reply(stream=body.stream)


@endpoint("POST", "/v1/responses/input_tokens", aliases=create_response.aliases, response_type=InputTokens)
async def count_input_tokens(context: RequestContext, body: ResponseRequest) -> Reply:
    """Count the tokens of a conversation."""
    response = await start_generation(context, body)
    return Json(InputTokens(input_tokens=await response.count_tokens()))


@endpoint("GET", "/v1/responses/{id}", response_type=Response)
async def get_response(context: RequestContext, _: None) -> Reply:
    """Return a stored response."""
    if context.query.get("stream", "false") == "true":
        raise ApiError(400, "stream: a stored response cannot be streamed; leave it out", code="invalid_value")
    return Json(_kept(context).response)


@endpoint("DELETE", "/v1/responses/{id}", response_type=Deleted)
async def delete_response(context: RequestContext, _: None) -> Reply:
    """Delete a stored response."""
    _kept(context)
    id = context.path_params["id"]
    context.state.response_store.delete(context.key, id)
    return Json(Deleted(id=id))


@endpoint("POST", "/v1/responses/{id}/cancel", response_type=Response)
async def cancel_response(context: RequestContext, _: None) -> Reply:
    """Refuse to cancel a response, since none runs in the background."""
    _kept(context)
    problem = "Cannot cancel a synchronous response. Responses do not run in the background here: close the connection"
    raise ApiError(400, problem, code="invalid_value", param="id")


@endpoint("GET", "/v1/responses/{id}/input_items", response_type=ItemList)
async def list_input_items(context: RequestContext, _: None) -> Reply:
    """List the input items of a stored response."""
    return Json(list_items(_kept(context).input_items(), context.query))


def _kept(context: RequestContext) -> StoredResponse:
    id = context.path_params["id"]
    if (found := context.state.response_store.get(context.key, id)) is None:
        # OpenAI's words, with the cause: clients search for them.
        problem = f"Response with id {id!r} not found: there is none here, or it was deleted"
        raise ApiError(404, problem, code="response_not_found", param="id")
    return found


RESPONSES: Final[Sequence[Endpoint]] = (
    create_response,
    count_input_tokens,
    get_response,
    delete_response,
    cancel_response,
    list_input_items,
)
UNSUPPORTED_PATHS: Final[Mapping[str, str]] = {
    "/v1/responses/compact": "conversations are not compacted here; send a shorter one, or `truncation`: auto",
}
"""Paths of OpenAI's API that are not served, and what to do instead."""
