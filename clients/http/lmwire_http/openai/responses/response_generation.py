"""The generation of one response, from its request to its last event."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ...errors import ApiError
from ...http.context import RequestContext
from ...http.endpoint import EventStream, Json
from ...http.sse import WaitingEvent
from ...inference.call_ids import OPENAI_PREFIX, restore_call_ids
from ...inference.chat import count_prompt_tokens, run_chat
from ...inference.generation import Generation
from .conversation import Conversation
from .items import AdditionalTools, InputItem, assign_ids, read_items
from .output_builder import OutputBuilder
from .request_options import chat_options, client_field
from .request_schema import ResponseRequest
from .response_schema import Response, fail_response, finish_response, is_incomplete, new_response
from .stored_items import StoredItems
from .stream_encoder import EventEncoder
from .stream_events import Event, ResponseCompleted, ResponseFailed, ResponseIncomplete
from .tool_schema import Tool, read_choice, read_tools
from .tool_set import ToolSet


class ResponseGeneration:
    """A response that is being generated.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    def __init__(self, context: RequestContext, body: ResponseRequest) -> None:
        self._context, self._body = context, body
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

    async def whole(self) -> Json:
        """Return the whole response."""
        async with self._generation() as generation:
            async for batch in generation:
                for _ in self._output.add(batch):
                    pass
            return Json(self._end(generation)[0])

    def stream(self) -> EventStream:
        """Return the response's events, which are sent as they come."""
        return EventStream(self._frames(), WaitingEvent(self._events.encode_waiting), self._encode_error)

    async def count_tokens(self) -> int:
        """Return the number of tokens in the prompt, without generating."""
        return await count_prompt_tokens(
            self._context, self._body.model, self._conversation.messages, self._options, rename=self._rename
        )

    async def _frames(self) -> AsyncIterator[bytes]:
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
