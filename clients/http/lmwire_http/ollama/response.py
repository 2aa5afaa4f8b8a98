"""Answers of /api/chat and /api/generate, whole or line by line, and the parts from which they are made."""

import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from lmwire import TokenDelta, ToolCallDelta

from ..http.context import RequestContext
from ..http.endpoint import Json, LineStream, Reply
from ..http.keep_alive import idle_limit, keeping_alive
from ..inference.answers import TokenLogprob, content_logprobs
from ..inference.call_ids import OPENAI_PREFIX, client_call_id
from ..inference.generation import Generation, finish_reason, lease_worker
from .request import AnswerRequest, without_tag


class CalledFunction(Struct, kw_only=True):
    """The function of a call."""

    index: int
    name: str
    arguments: Any
    """A JSON object."""


class ToolCall(Struct, kw_only=True):
    """A tool call of the model."""

    id: str
    function: CalledFunction


class Line(Struct, kw_only=True):
    """A part of an answer, or the whole. Times are in nanoseconds."""

    model: str
    """The model's name in the request."""
    created_at: datetime = field(default_factory=partial(datetime.now, UTC))
    done: bool = False
    done_reason: Literal["stop", "length", "load", "unload"] | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    """Time from the request's head to the end of the answer."""
    load_duration: int | UnsetType = UNSET
    """The part of it before a worker with the model was ready."""
    prompt_eval_count: int | UnsetType = UNSET
    """Tokens of the prompt, cached ones included."""
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    """Tokens of the answer."""
    eval_duration: int | UnsetType = UNSET
    logprobs: list[TokenLogprob] | UnsetType = UNSET
    """The tokens of the content."""


class AnswerMessage(Struct, kw_only=True):
    """The answer, or a part of it."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    thinking: str | UnsetType = UNSET
    tool_calls: list[ToolCall] | UnsetType = UNSET


class ChatResponse(Line, kw_only=True):
    """The response of /api/chat, or a line of its stream."""

    message: AnswerMessage


class GenerateResponse(Line, kw_only=True):
    """The response of /api/generate, or a line of its stream."""

    response: str = ""
    thinking: str | UnsetType = UNSET
    context: list[int] | UnsetType = UNSET
    """The conversation with this answer, to send back unchanged with the next prompt. The numbers are not token ids."""


def end_fields(context: RequestContext, generation: Generation) -> dict[str, Any]:
    """Return the fields of the last line of an answer.

    Args:
        context: The request's context.
        generation: The finished generation.

    Raises:
        ApiError: The server has cancelled the answer.
    """
    result = generation.result
    usage, timings = result.usage, result.timings
    prefill_ms = timings.prefill_ms or 0
    return {
        "done": True,
        "done_reason": "length" if finish_reason(result.finish_reason) == "length" else "stop",
        "total_duration": _nanoseconds(monotonic() - context.started_at),
        "load_duration": _nanoseconds(generation.started_at - context.started_at),
        "prompt_eval_count": usage.prompt_tokens,
        "prompt_eval_duration": _nanoseconds(prefill_ms / 1000),
        "eval_count": usage.completion_tokens,
        "eval_duration": _nanoseconds((timings.total_ms - timings.queued_ms - prefill_ms) / 1000),
    }


def _nanoseconds(seconds: float) -> int:
    return max(1, round(seconds * 1e9))  # clients divide by durations


@dataclasses.dataclass(slots=True)
class AnswerPart:
    """A part of an answer. Its reasoning comes before its content, and that before its calls."""

    thinking: str = ""
    content: str = ""
    tool_calls: list[ToolCall] = dataclasses.field(default_factory=list[ToolCall])
    logprobs: list[TokenLogprob] = dataclasses.field(default_factory=list[TokenLogprob])


class PartBuilder:
    """Builder of an answer's parts from its deltas.

    A call is held back until it is complete, since the API has no partial calls. The text of a call that is invalid or
    cut off is content. White space before the content is held back, and dropped if calls follow.
    """

    def __init__(self) -> None:
        self._calls: dict[int, list[ToolCallDelta]] = {}
        self._next_index = 0
        self._whitespace = ""
        self._has_content = False

    def add(self, deltas: Sequence[TokenDelta | ToolCallDelta]) -> list[AnswerPart]:
        """Return the parts for these deltas, as few as their order allows."""
        parts = [AnswerPart()]
        for delta in deltas:
            if isinstance(delta, ToolCallDelta):
                parts[-1].tool_calls += self._add_call(delta)
                continue
            thinking, content = delta.reasoning, self._visible(delta.text)
            last = parts[-1]
            if last.tool_calls or (thinking and last.content):
                parts.append(last := AnswerPart())
            last.thinking += thinking
            last.content += content
            last.logprobs += content_logprobs(delta)
        return [part for part in parts if part != AnswerPart()]

    def end(self) -> list[AnswerPart]:
        """Return the part that was held back, if the whole content is white space."""
        return [AnswerPart(content=self._whitespace)] if self._whitespace and not self._next_index else []

    def _visible(self, text: str) -> str:
        if self._has_content:
            return text
        self._whitespace += text
        if not text.strip():
            return ""
        self._has_content = True
        text, self._whitespace = self._whitespace, ""
        return text

    def _add_call(self, delta: ToolCallDelta) -> list[ToolCall]:
        deltas = self._calls.setdefault(delta.index, [])
        deltas.append(delta)
        if delta.complete is None:
            return []
        del self._calls[delta.index]
        return [self._make_call(deltas)] if delta.complete else []

    def _make_call(self, deltas: Sequence[ToolCallDelta]) -> ToolCall:
        first, arguments = deltas[0], "".join([delta.arguments for delta in deltas])
        function = CalledFunction(
            index=self._next_index, name=first.name or "", arguments=msgspec.Raw(arguments.encode() or b"{}")
        )
        self._next_index += 1
        return ToolCall(id=client_call_id(first.call_id, OPENAI_PREFIX), function=function)


def join_parts(parts: Sequence[AnswerPart]) -> AnswerPart:
    """Return the whole answer."""
    return AnswerPart(
        thinking="".join([part.thinking for part in parts]),
        content="".join([part.content for part in parts]),
        tool_calls=[call for part in parts for call in part.tool_calls],
        logprobs=[token for part in parts for token in part.logprobs],
    )


MakeLine = Callable[..., Line]
"""Returns the line for a part of an answer, with further fields of `Line`."""
_encode: Final = msgspec.json.Encoder().encode


async def reply_with_answer(
    context: RequestContext,
    body: AnswerRequest,
    generate: Callable[[], AbstractAsyncContextManager[Generation]],
    make_line: MakeLine,
    continue_with: Callable[[str], dict[str, Any]] = lambda _: {},
) -> Reply:
    """Return an answer, as a stream unless the request forbids it.

    Args:
        context: The request's context.
        body: The request's body.
        generate: Starts the generation.
        make_line: Makes the API's lines.
        continue_with: Returns the fields of the last line that depend on the whole content.
    """
    answer = _Answer(context, body, generate, make_line, continue_with)
    return await answer.whole() if body.stream is False else LineStream(answer.lines())


async def load_or_unload(context: RequestContext, body: AnswerRequest, make_line: MakeLine) -> Json:
    """Load the model, or unload it if `keep_alive` is 0. This is the meaning of a request without a prompt.

    Args:
        context: The request's context.
        body: The request's body.
        make_line: Makes the API's lines.

    Raises:
        ApiError: The model does not exist or cannot be loaded.
    """
    idle_s, name = idle_limit(body.keep_alive), without_tag(body.model)
    if idle_s == 0:
        await context.state.pool.unload_when_idle(name)
        return Json(make_line(AnswerPart(), model=body.model, done=True, done_reason="unload"))
    with keeping_alive(context, idle_s):
        async with lease_worker(context, name, rename=lambda field: field):
            pass
    return Json(make_line(AnswerPart(), model=body.model, done=True, done_reason="load"))


class _Answer:
    """The answer to one request."""

    def __init__(
        self,
        context: RequestContext,
        body: AnswerRequest,
        generate: Callable[[], AbstractAsyncContextManager[Generation]],
        make_line: MakeLine,
        continue_with: Callable[[str], dict[str, Any]],
    ) -> None:
        self._context, self._model, self._generate, self._make_line = context, body.model, generate, make_line
        self._continue_with = continue_with
        self._idle_s = idle_limit(body.keep_alive)
        self._parts = PartBuilder()

    async def whole(self) -> Json:
        """Return the whole answer."""
        parts: list[AnswerPart] = []
        with keeping_alive(self._context, self._idle_s):
            async with self._generate() as generation:
                async for batch in generation:
                    parts += self._parts.add(batch)
                end = end_fields(self._context, generation)
        whole = join_parts([*parts, *self._parts.end()])
        return Json(self._make_line(whole, model=self._model, **end, **self._continue_with(whole.content)))

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the answer's lines as they come."""
        texts: list[str] = []
        with keeping_alive(self._context, self._idle_s):
            async with self._generate() as generation:
                async for batch in generation:
                    if parts := self._parts.add(batch):
                        texts += [part.content for part in parts]
                        yield b"".join([self._line(part) for part in parts])
                end = end_fields(self._context, generation)
        rest = self._parts.end()
        content = "".join([*texts, *(part.content for part in rest)])
        last = self._make_line(AnswerPart(), model=self._model, **end, **self._continue_with(content))
        yield b"".join([*map(self._line, rest), _encode(last), b"\n"])

    def _line(self, part: AnswerPart) -> bytes:
        return _encode(self._make_line(part, model=self._model)) + b"\n"
