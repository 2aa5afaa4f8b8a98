"""Encoder of a streamed chat completion: chunks in the order of OpenAI's API.

For each choice: the role; reasoning, text and tool calls as they come; the finish reason. Then the usage, if requested,
and `[DONE]`. In a stream for a client of llama.cpp's server, the content beside the role is null, and the last chunk
has the times, and the prompt if it was asked for.

Tool calls are streamed, since an argument can be a whole file. A call can turn out to be invalid ([Q-2]), but sent
chunks cannot be withdrawn. So the braces that would make the arguments valid are held back until the call is complete.
After a cut-off call, the client has arguments that are not valid JSON, which OpenAI's documentation allows. The call's
text is never sent as content as well. White space is held back until text follows, and dropped if only calls do.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from lmwire import TokenDelta, ToolCallDelta
from lmwire_protocol import events

from ...http.sse import DONE, TextEventTemplate, data_event
from ...inference.answers import ArgumentsBuffer, Logprobs, TokenLogprob, content_logprobs
from ...inference.call_ids import OPENAI_PREFIX, client_call_id
from ...inference.timings import Timings, TimingsSoFar, make_timings
from ...settings import ReasoningField
from ..request_fields import UsageChunk
from ..response_fields import PromptProgress, ResponseIdentity, Usage, UsageSoFar, total_usage
from .response import ChatFinishReason, Verbose, chat_finish_reason, reasoning_fields


class FunctionDelta(Struct, kw_only=True, gc=False):
    """The function of a call. The name comes first."""

    name: str | UnsetType = UNSET
    arguments: str
    """The next part of the arguments' JSON text."""


class ToolCallChunk(Struct, kw_only=True):
    """A part of a tool call."""

    index: int
    """The call's index in the answer."""
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: FunctionDelta


class Delta(Struct, kw_only=True):
    """A part of the answer."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    """Null beside the role, in a stream for a client of llama.cpp's server."""
    refusal: UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    """The same, on a server that was started with this name (`--reasoning-field`)."""
    tool_calls: list[ToolCallChunk] | UnsetType = UNSET
    function_call: FunctionDelta | UnsetType = UNSET
    """A part of the call, if the request has `functions`."""


class ChunkChoice(Struct, kw_only=True):
    """A part of one of `n` answers."""

    index: int
    delta: Delta
    logprobs: Logprobs | None = None
    finish_reason: ChatFinishReason | None = None
    stop_str: str | UnsetType = UNSET
    """In the last chunk: the stop string that ended the answer."""


class Chunk(Struct, kw_only=True):
    """A part of a chat completion."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChunkChoice]
    usage: Usage | UnsetType | None = UNSET
    """Present if requested: null, except in the last chunk, which has no choices, and with `continuous_usage_stats`."""
    prompt_progress: PromptProgress | UnsetType = UNSET
    """Present, if requested, in chunks that come while the prompt is processed."""
    timings: Timings | UnsetType = UNSET
    """Present in the last chunk of a stream for a client of llama.cpp's server.

    With `timings_per_token`, chunks with a part of the answer have the times so far.
    """
    verbose: Verbose | UnsetType = field(name="__verbose", default=UNSET)
    """Present in the last chunk of a stream with `verbose`."""


class ChatStreamEncoder:
    """Encoder of one stream.

    Args:
        identity: The chat completion's id, time, model and fingerprint.
        usage: The form of the usage at the end of the stream; None without it.
        so_far: Counts the tokens for the usage in each chunk; None without it.
        has_functions: Whether the request has `functions`, the format before tools.
        reasoning_field: Name of the reasoning.
        is_for_llama_cpp: Whether the stream is for a client of llama.cpp's server.
        timings: Takes the times for each chunk; None without them.
    """

    def __init__(
        self,
        identity: ResponseIdentity,
        *,
        usage: UsageChunk | None,
        so_far: UsageSoFar | None,
        has_functions: bool = False,
        reasoning_field: ReasoningField = "reasoning_content",
        is_for_llama_cpp: bool = False,
        timings: TimingsSoFar | None = None,
    ) -> None:
        self._identity = identity
        self._usage_chunk = usage
        self._usage: UnsetType | None = None if usage else UNSET
        self._so_far = so_far
        self._has_functions = has_functions
        self._reasoning_field: ReasoningField = reasoning_field
        self._is_for_llama_cpp = is_for_llama_cpp
        self._timings = timings
        self.verbose: Verbose | UnsetType = UNSET
        """The prompt, if the last chunk shows it."""
        self._texts: dict[tuple[int, str], TextEventTemplate] = {}
        """Templates by choice and channel: of reasoning from a choice's start, of content from its first text."""
        self._whitespace: dict[int, tuple[str, list[TokenLogprob]]] = {}
        """White space of choices without text, with its log-probabilities."""
        self._calls: dict[tuple[int, int], ArgumentsBuffer] = {}

    def deltas(self, batch: list[TokenDelta | ToolCallDelta], number: int = 0) -> bytes:
        """Return the chunks for deltas that came together.

        Args:
            batch: The deltas.
            number: The number of their generation in the request.
        """
        if self._so_far or self._timings:
            return b"".join([self._counted_frames(delta, number) for delta in batch])
        return b"".join([self._frames(delta) for delta in batch])

    def note_end(self, number: int, result: events.ResultDone) -> None:
        """Take in the usage of one of the request's generations.

        Args:
            number: The number of the generation in the request.
            result: The worker's result.
        """
        if self._so_far:
            self._so_far.note_end(number, result.usage)

    def text(self, text: str) -> bytes:
        """Return the chunks for text of the first choice that the model did not write."""
        return b"".join([self._frame(choice) for choice in [*self._begin(0), _choice(0, Delta(content=text))]])

    def waiting(self, progress: PromptProgress | None) -> bytes:
        """Return a chunk with an empty delta, for a stream that has nothing else to send.

        A client of llama.cpp's server finds the role in the first chunk, also in this one.
        """
        begun = self._begin(0) if self._is_for_llama_cpp else []
        chunk = self._chunk(begun[0] if begun else _choice(0, Delta()))
        chunk.prompt_progress = progress or UNSET
        return data_event(chunk)

    def end(self, result: events.ResultDone) -> bytes:
        """Return the last chunks.

        Raises:
            ApiError: The server has cancelled the answer.
        """
        choices: list[ChunkChoice] = []
        for index, choice in enumerate(result.choices or [result]):
            reason = chat_finish_reason(choice.finish_reason, has_functions=self._has_functions)
            choices += [*self._begin(index), *self._end_text(index)]
            stop = UNSET if choice.stop is None else choice.stop
            choices.append(ChunkChoice(index=index, delta=Delta(), finish_reason=reason, stop_str=stop))
        chunks = [self._chunk(choice) for choice in choices]
        if self._usage is None:
            repeated = choices[-1] if self._usage_chunk == "choice" else None
            chunks.append(self._chunk(repeated, total_usage(result)))
        if self._is_for_llama_cpp:
            chunks[-1].timings = make_timings(result)
            chunks[-1].verbose = self.verbose
        return b"".join([*map(data_event, chunks), DONE])

    def _counted_frames(self, delta: TokenDelta | ToolCallDelta, number: int) -> bytes:
        if self._so_far:
            self._so_far.note_delta(number, delta)
        if self._timings:
            self._timings.note_delta(delta)
        return b"".join([self._frame(choice) for choice in self._choices(delta)])

    def _frames(self, delta: TokenDelta | ToolCallDelta) -> bytes:
        # Most deltas are plain text: this path decides the server's cost per token.
        if isinstance(delta, TokenDelta) and delta.token and not (delta.logprobs or delta.call):
            texts = self._texts.get((delta.choice, delta.channel))
            if texts:
                return texts.event(delta.token)
        return b"".join([self._frame(choice) for choice in self._choices(delta)])

    def _choices(self, delta: TokenDelta | ToolCallDelta) -> list[ChunkChoice]:
        """Return the content of the chunks for a delta."""
        index = delta.choice
        choices = self._begin(index)
        if isinstance(delta, ToolCallDelta):
            choices += [_choice(index, self._delta_of(call)) for call in self._call_deltas(delta)]
        elif delta.call:
            pass  # the text of a call, which is sent as a call
        elif reasoning := delta.reasoning:
            choices.append(_choice(index, self._reasoning_delta(reasoning)))
        elif (logprobs := content_logprobs(delta)) or delta.text:
            choices += self._add_text(index, delta.text, logprobs)
        return choices

    def _begin(self, index: int) -> list[ChunkChoice]:
        if (index, "reasoning") in self._texts:
            return []
        self._texts[index, "reasoning"] = self._texts_as(index, self._reasoning_delta)
        if self._is_for_llama_cpp:
            return [_choice(index, Delta(role="assistant", content=None))]
        return [_choice(index, Delta(role="assistant", content="", refusal=None))]

    def _reasoning_delta(self, text: str) -> Delta:
        return Delta(**reasoning_fields(text, self._reasoning_field))

    def _add_text(self, index: int, text: str, logprobs: list[TokenLogprob]) -> Iterator[ChunkChoice]:
        """Yield the content of the chunk for text. White space at the start is held back."""
        if (index, "content") not in self._texts:
            whitespace, earlier = self._whitespace.pop(index, ("", []))
            text, logprobs = whitespace + text, earlier + logprobs
            if not text.strip():
                self._whitespace[index] = text, logprobs
                return
            self._texts[index, "content"] = self._texts_as(index, lambda text: Delta(content=text))
        yield _choice(index, Delta(content=text), Logprobs(content=logprobs) if logprobs else None)

    def _end_text(self, index: int) -> Iterator[ChunkChoice]:
        """Yield the content of the chunk for white space that is the whole answer."""
        text, logprobs = self._whitespace.pop(index, ("", []))
        if text and not any(choice == index for choice, _ in self._calls):
            yield _choice(index, Delta(content=text), Logprobs(content=logprobs) if logprobs else None)

    def _texts_as(self, index: int, make_delta: Callable[[str], Delta]) -> TextEventTemplate:
        return TextEventTemplate(lambda text: self._chunk(_choice(index, make_delta(text))))

    def _call_deltas(self, delta: ToolCallDelta) -> Iterator[ToolCallChunk]:
        key = delta.choice, delta.index
        if (call := self._calls.get(key)) is None:
            call = self._calls[key] = ArgumentsBuffer()
            function = FunctionDelta(name=delta.name or "", arguments="")
            id = client_call_id(delta.call_id, OPENAI_PREFIX)
            yield ToolCallChunk(index=delta.index, id=id, type="function", function=function)
        if arguments := call.next_delta(delta.arguments, delta.complete):
            yield ToolCallChunk(index=delta.index, function=FunctionDelta(arguments=arguments))

    def _delta_of(self, call: ToolCallChunk) -> Delta:
        return Delta(function_call=call.function) if self._has_functions else Delta(tool_calls=[call])

    def _frame(self, choice: ChunkChoice) -> bytes:
        chunk = self._chunk(choice)
        if self._timings and choice.delta.role is UNSET:
            chunk.timings = self._timings.timings()
        return data_event(chunk)

    def _chunk(self, choice: ChunkChoice | None, usage: Usage | None = None) -> Chunk:
        return Chunk(
            **self._identity._asdict(),
            choices=[] if choice is None else [choice],
            usage=usage or (self._so_far.usage() if self._so_far else self._usage),
        )


def _choice(index: int, delta: Delta, logprobs: Logprobs | None = None) -> ChunkChoice:
    return ChunkChoice(index=index, delta=delta, logprobs=logprobs)
