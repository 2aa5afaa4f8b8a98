"""POST /infill: llama.cpp's endpoint for the completion of code, as llama.vim and llama.vscode use it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from time import monotonic
from typing import Any, Final, Literal, NamedTuple

from lmwire import AsyncStream
from lmwire_protocol import events

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json, Reply, reply_with
from ..http.sse import WaitingEvent, comment, data_event
from ..inference.generation import finish_reason, run_generation
from ..inference.options import SAMPLING_ALIASES
from ..pool import Lease
from .line_limits import LineLimits
from .request_schema import InfillRequest, client_field, infill_options
from .response_schema import Infill, make_timings, select_fields


class _Part(NamedTuple):
    """A part of the answer.

    Args:
        text: Its text.
        tokens: Its tokens.
    """

    text: str
    tokens: list[int]


class InfillGeneration:
    """The text of one gap.

    Args:
        context: The request's context.
        body: The request's body.
    """

    def __init__(self, context: RequestContext, body: InfillRequest) -> None:
        self._context, self._body = context, body
        self._before = (body.input_prefix or "") + (body.prompt or "")
        self._options: Any = infill_options(body)
        self._limits = LineLimits(body.n_indent or 0, (body.t_max_predict_ms or 0) / 1000)
        self._result: events.ResultDone | None = None
        self.waiting = WaitingEvent(comment)

    async def whole(self) -> Json:
        """Return the whole text."""
        async with aclosing(self._parts()) as parts:
            text = "".join([part.text async for part in parts])
        return Json(select_fields(self._last(text), self._body.response_fields))

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the text's events as they come."""
        async with aclosing(self._parts()) as parts:
            async for part in parts:
                yield data_event(Infill(content=part.text, tokens=part.tokens, stop=False))
        yield data_event(select_fields(self._last(""), self._body.response_fields))

    async def _parts(self) -> AsyncGenerator[_Part]:
        body, limits = self._body, self._limits
        texts = [file.text for file in body.input_extra or ()]
        async with run_generation(
            self._context, body.model, self._options, self._start, prompt=[*texts, self._before], rename=client_field
        ) as generation:
            async for batch in generation:
                for delta in () if limits.ended else batch:
                    yield _Part(limits.push(delta.text, monotonic()), [*delta.token_ids])
                    if limits.ended:
                        generation.cancel()
                        break
            self._result = generation.result
            if rest := limits.flush():
                yield _Part(rest, [])

    async def _start(self, lease: Lease, options: dict[str, Any]) -> AsyncStream:
        return lease.worker.generate(self._before, **options)

    def _last(self, text: str) -> Infill:
        """Return the last part of a response.

        Raises:
            ApiError: The server has cancelled the answer.
        """
        assert self._result is not None
        usage = self._result.usage
        return Infill(
            content=text,
            tokens=[],
            stop=True,
            model=self._context.model,
            tokens_predicted=usage.completion_tokens,
            tokens_evaluated=usage.prompt_tokens,
            tokens_cached=usage.cached_tokens,
            has_new_line=self._limits.has_line_break,
            stop_type=self._stop_type(self._result),
            stopping_word=self._result.stop or "",
            timings=make_timings(self._result),
        )

    def _stop_type(self, result: events.ResultDone) -> Literal["eos", "limit", "word"]:
        if self._limits.ended or finish_reason(result.finish_reason) == "length":
            return "limit"
        return "word" if result.stop is not None else "eos"


async def _infill(context: RequestContext, body: InfillRequest) -> Reply:
    return await reply_with(InfillGeneration(context, body), stream=body.stream)


INFILL: Final = Endpoint(
    method="POST",
    path="/infill",
    summary="Fill the gap between two texts, as llama.cpp's server does.",
    handler=_infill,
    request_type=InfillRequest,
    aliases={name: SAMPLING_ALIASES[name] for name in ("repeat_penalty", "cache_prompt")},
    response_type=Infill,
    event_type=Infill,
)
