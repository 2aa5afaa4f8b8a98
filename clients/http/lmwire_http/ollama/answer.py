"""Answers of /api/chat and /api/generate: a generation, as a whole or line by line."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec

from ..http.context import RequestContext
from ..http.endpoint import Json, LineStream, Reply
from ..http.keep_alive import idle_limit, keeping_alive
from ..inference.generation import Generation, lease_worker
from .answer_parts import AnswerPart, PartBuilder, join_parts
from .model_names import without_tag
from .request_schema import AnswerRequest
from .response_schema import Line, end_fields

MakeLine = Callable[..., Line]
"""Returns the line for a part of an answer, with further fields of `Line`."""
_encode: Final = msgspec.json.Encoder().encode


async def reply_with_answer(
    context: RequestContext,
    body: AnswerRequest,
    generate: Callable[[], AbstractAsyncContextManager[Generation]],
    make_line: MakeLine,
) -> Reply:
    """Return an answer, as a stream unless the request forbids it.

    Args:
        context: The request's context.
        body: The request's body.
        generate: Starts the generation.
        make_line: Makes the API's lines.
    """
    answer = _Answer(context, body, generate, make_line)
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
    ) -> None:
        self._context, self._model, self._generate, self._make_line = context, body.model, generate, make_line
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
        return Json(self._make_line(join_parts([*parts, *self._parts.end()]), model=self._model, **end))

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the answer's lines as they come."""
        with keeping_alive(self._context, self._idle_s):
            async with self._generate() as generation:
                async for batch in generation:
                    if parts := self._parts.add(batch):
                        yield b"".join([self._line(part) for part in parts])
                end = end_fields(self._context, generation)
        last = self._make_line(AnswerPart(), model=self._model, **end)
        yield b"".join([*map(self._line, self._parts.end()), _encode(last), b"\n"])

    def _line(self, part: AnswerPart) -> bytes:
        return _encode(self._make_line(part, model=self._model)) + b"\n"
