"""POST /infill: llama.cpp's endpoint for the completion of code, as llama.vim and llama.vscode use it."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from lmwire import AsyncStream, PromptOptions
from lmwire_protocol import events

from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, Streamable, endpoint
from ..http.sse import WaitingEvent, comment, data_event
from ..inference.generation import finish_reason, run_generation
from ..inference.options import SAMPLING_ALIASES, given_fields, shared_fields
from ..inference.timings import Timings, make_timings
from ..limits import ContextFiles, ShortList, StopStrings
from ..pool import Lease

_UNNAMED: Final = "tmp"
"""The name of a file without one, as in llama.cpp's server."""
_UNLIMITED: Final = -1
_SEED_COUNT: Final = 2**53
_CLIENT_FIELDS: Final = {"suffix": "input_suffix", "context_files": "input_extra", "max_tokens": "n_predict"}
"""The client's names of the worker's fields."""
_INDENTATION: Final = re.compile(r"[ \t]*")


class ExtraFile(Struct, kw_only=True, forbid_unknown_fields=True):
    """A part of another file."""

    filename: str = _UNNAMED
    text: str
    time: Any = None
    """Ignored: the time at which llama.vim chose the part."""


class InfillRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A gap to fill. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    input_prefix: str | None = None
    """Text before the gap."""
    input_suffix: str | None = None
    """Text after the gap."""
    input_extra: ContextFiles[ExtraFile] | None = None
    """Parts of other files, the most relevant last."""
    prompt: str | None = None
    """The line of the cursor, up to the cursor. It follows `input_prefix`."""
    n_predict: Annotated[int, Meta(ge=_UNLIMITED)] | None = None
    """Maximum number of tokens; -1 is the rest of the context, and 0 only puts the prompt into the cache."""
    n_indent: Annotated[int, Meta(ge=0)] | None = None
    """The answer ends before a line with less indentation, in characters."""
    t_max_predict_ms: Annotated[int, Meta(ge=0)] | None = None
    """Milliseconds after the first token, after which an answer with a line break ends; 0 is off."""
    t_max_prompt_ms: int | None = None
    """Ignored, as by llama.cpp's server."""
    stream: bool | None = None
    response_fields: ShortList[str] | None = None
    """Fields of the response, with a slash between the names of nested ones. Absent or empty: all."""
    stop: str | StopStrings | None = None
    temperature: float | None = None
    """Absent: 0, the most probable tokens."""
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    cache: str | None = None
    samplers: ShortList[str] | None = None
    """Ignored: the order of the samplers is fixed."""
    id_slot: int | None = None
    """Ignored: the server chooses the place in the batch."""


_OPTIONS: Final = shared_fields(InfillRequest, PromptOptions, converted=("stop", "seed"))


def infill_options(body: InfillRequest) -> PromptOptions:
    """Return all options except the prompt, as the client library takes them."""
    options: Any = {"temperature": 0.0, "truncate": "left", **given_fields(body, *_OPTIONS)}
    options["suffix"] = body.input_suffix or ""
    options["context_files"] = [{"name": file.filename, "text": file.text} for file in body.input_extra or ()]
    if body.n_predict is not None and body.n_predict != _UNLIMITED:
        options["max_tokens"] = body.n_predict
    if body.seed is not None and body.seed >= 0:
        options["seed"] = body.seed % _SEED_COUNT
    if body.stop is not None:
        options["stop"] = [body.stop] if isinstance(body.stop, str) else body.stop
    return options


def client_field(field: str) -> str:
    """Return the client's name of a worker's field."""
    for own, theirs in _CLIENT_FIELDS.items():
        if field == own or field.startswith(f"{own}["):
            return theirs + field.removeprefix(own)
    return field


class Infill(Struct, kw_only=True):
    """The text of a gap, or a part of it."""

    index: Literal[0] = 0
    content: str
    tokens: list[int]
    """The tokens of `content` in a stream; empty in a whole response."""
    stop: bool
    """True for a whole response and for the last event of a stream. The fields below are present then."""
    model: str | UnsetType = UNSET
    tokens_predicted: int | UnsetType = UNSET
    tokens_evaluated: int | UnsetType = UNSET
    """Tokens of the prompt."""
    tokens_cached: int | UnsetType = UNSET
    """Tokens of the prompt that came from the cache."""
    has_new_line: bool | UnsetType = UNSET
    stop_type: Literal["eos", "limit", "word"] | UnsetType = UNSET
    stopping_word: str | UnsetType = UNSET
    timings: Timings | UnsetType = UNSET


def select_fields(infill: Infill, paths: Sequence[str] | None) -> Any:
    """Return a response with these fields alone, each under its whole path, as llama.cpp's server does.

    Args:
        infill: The response.
        paths: The fields, such as `timings/prompt_n`. Absent or empty: all.
    """
    if not paths:
        return infill
    whole: Any = msgspec.to_builtins(infill)
    found = {path: _nested(whole, path.split("/")) for path in paths}
    return {path: value for path, value in found.items() if value is not UNSET}


def _nested(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        members = cast(dict[str, Any], value) if isinstance(value, dict) else {}
        value = members.get(name, UNSET)
    return value


class LineLimits:
    """Ends the text of one answer.

    Args:
        n_indent: Least indentation of each line after the first, in characters; 0 is off. Blank lines have none.
        max_s: Longest time after the first text for an answer with a line break, in seconds; 0 is off.
    """

    def __init__(self, n_indent: int, max_s: float) -> None:
        self.ended = False
        """True if the answer ends here."""
        self.has_line_break = False
        """True if the text so far has a line break."""
        self._n_indent = n_indent
        self._max_s = max_s
        self._started_at: float | None = None
        self._held = ""
        """A line break and the indentation after it, as long as nothing else follows."""

    def push(self, text: str, now: float) -> str:
        """Add text, and return what is certain to belong to the answer.

        Args:
            text: The next text.
            now: The time, in seconds.
        """
        if self.ended:
            return ""
        self._started_at = now if self._started_at is None else self._started_at
        visible = self._within_indentation(text) if self._n_indent else text
        self.has_line_break |= "\n" in visible
        if self._max_s and self.has_line_break and now - self._started_at > self._max_s:
            self.ended = True
        return visible

    def flush(self) -> str:
        """Return the text that was held back, at the answer's own end."""
        return "" if self.ended else self._held

    def _within_indentation(self, added: str) -> str:
        text, self._held = self._held + added, ""
        line_break = text.find("\n")
        while line_break >= 0:
            indentation = _INDENTATION.match(text, line_break + 1)
            start = indentation.end() if indentation else line_break + 1
            if start == len(text):
                self._held = text[line_break:]
                return text[:line_break]
            if text[start] != "\n" and start - line_break - 1 < self._n_indent:
                self.ended = True
                return text[:line_break]
            line_break = text.find("\n", start)
        return text


class _Part(NamedTuple):
    """A part of the answer.

    Args:
        text: Its text.
        tokens: Its tokens.
    """

    text: str
    tokens: list[int]


class InfillGeneration(Streamable[InfillRequest]):
    """The text of one gap."""

    def __init__(self, context: RequestContext, body: InfillRequest) -> None:
        super().__init__(context, body)
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


@endpoint(
    "POST",
    "/infill",
    aliases={name: SAMPLING_ALIASES[name] for name in ("repeat_penalty", "cache_prompt")},
    response_type=Infill,
    event_type=Infill,
)
async def fill_in(context: RequestContext, body: InfillRequest) -> Reply:
    """Fill the gap between two texts, as llama.cpp's server does."""
    return await InfillGeneration(context, body).reply(stream=body.stream)
