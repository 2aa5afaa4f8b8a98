"""The body of a chat completion response."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from lmwire import Answer, TokenDelta, ToolCallDelta
from lmwire_protocol import events

from ...inference.answers import ArgumentsBuffer, Logprobs, content_logprobs
from ...inference.call_ids import OPENAI_PREFIX, client_call_id
from ...inference.generation import FinishReason, finish_reason
from ...inference.timings import Timings, make_timings
from ...settings import ReasoningField
from ..response_fields import ResponseIdentity, Usage, total_usage

ChatFinishReason: TypeAlias = FinishReason | Literal["function_call"]


class FunctionCall(Struct, kw_only=True):
    """The function and arguments of a call."""

    name: str
    arguments: str
    """JSON text of an object. In a call that was cut off it is incomplete."""


class ToolCall(Struct, kw_only=True):
    """A call that the model makes."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class AssistantMessage(Struct, kw_only=True):
    """The answer, as a message for the conversation's next turn."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    """Null if the answer has only tool calls, and white space beside them."""
    refusal: None = None
    reasoning_content: str | UnsetType = UNSET
    """The model's reasoning."""
    reasoning: str | UnsetType = UNSET
    """The same, on a server that was started with this name (`--reasoning-field`)."""
    tool_calls: list[ToolCall] | UnsetType = UNSET
    function_call: FunctionCall | UnsetType = UNSET
    """The call, if the request has `functions`."""


class ChatChoice(Struct, kw_only=True):
    """One of `n` answers."""

    index: int
    message: AssistantMessage
    logprobs: Logprobs | None
    finish_reason: ChatFinishReason
    stop_str: str | UnsetType = UNSET
    """The stop string that ended the answer."""


class Verbose(Struct, kw_only=True):
    """The prompt, as llama.cpp's server shows it for a request with `verbose`."""

    prompt: str
    """The text of the prompt, special tokens included."""


class ChatCompletion(Struct, kw_only=True):
    """The answers to a conversation."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    """Time of the request, in seconds since 1970."""
    model: str
    system_fingerprint: str
    """Changes with the version of the server, the model and the options that change answers."""
    choices: list[ChatChoice]
    usage: Usage
    timings: Timings | UnsetType = UNSET
    """Present if the request has `timings_per_token`, `return_progress` or `verbose`, as in llama.cpp's server."""
    verbose: Verbose | UnsetType = field(name="__verbose", default=UNSET)
    """Present if the request has `verbose`."""


class ChoiceParts(NamedTuple):
    """One of `n` answers, in the parts that the response needs."""

    answer: Answer
    logprobs: Logprobs | None
    calls: list[ToolCall]
    content: str
    reasoning: str


def collect_choices(
    deltas: Sequence[TokenDelta | ToolCallDelta], answers: Sequence[Answer], *, logprobs: bool
) -> list[ChoiceParts]:
    """Return the answers without the text of invalid calls.

    Args:
        deltas: The deltas of all choices.
        answers: The client library's answers.
        logprobs: Whether the request asks for log-probabilities.
    """
    choices: list[ChoiceParts] = []
    for index, answer in enumerate(answers):
        own = [delta for delta in deltas if delta.choice == index]
        tokens = [token for delta in own for token in content_logprobs(delta)]
        text = "".join([delta.text for delta in own if not delta.call])
        reasoning = "".join([delta.reasoning for delta in own if not delta.call])
        calls = collect_tool_calls(own)
        if calls and not text.strip():
            text, tokens = "", []
        choices.append(ChoiceParts(answer, Logprobs(content=tokens) if logprobs else None, calls, text, reasoning))
    return choices


def chat_completion(
    identity: ResponseIdentity,
    choices: list[ChoiceParts],
    result: events.ResultDone,
    *,
    has_functions: bool,
    reasoning_field: ReasoningField,
    has_timings: bool,
    verbose: Verbose | UnsetType,
) -> ChatCompletion:
    """Return the response.

    Args:
        identity: The chat completion's id, time, model and fingerprint.
        choices: The answers.
        result: The worker's report.
        has_functions: Whether the request has `functions`, the format before tools.
        reasoning_field: Name of the reasoning.
        has_timings: Whether the response has the times.
        verbose: The prompt, if it is shown.

    Raises:
        ApiError: The server has cancelled the answers.
    """
    return ChatCompletion(
        **identity._asdict(),
        choices=[
            ChatChoice(
                index=index,
                message=_message(choice, has_functions=has_functions, reasoning_field=reasoning_field),
                logprobs=choice.logprobs,
                finish_reason=chat_finish_reason(choice.answer.finish_reason, has_functions=has_functions),
                stop_str=UNSET if choice.answer.stop is None else choice.answer.stop,
            )
            for index, choice in enumerate(choices)
        ],
        usage=total_usage(result),
        timings=make_timings(result) if has_timings else UNSET,
        verbose=verbose,
    )


def collect_tool_calls(deltas: Iterable[TokenDelta | ToolCallDelta]) -> list[ToolCall]:
    """Return the calls of a choice as in a stream, also the one that was cut off."""
    calls: dict[int, tuple[ToolCall, ArgumentsBuffer]] = {}
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            if delta.index not in calls:
                function = FunctionCall(name=delta.name or "", arguments="")
                id = client_call_id(delta.call_id, OPENAI_PREFIX)
                calls[delta.index] = ToolCall(id=id, function=function), ArgumentsBuffer()
            call, arguments = calls[delta.index]
            call.function.arguments += arguments.next_delta(delta.arguments, delta.complete)
    return [call for call, _ in calls.values()]


def chat_finish_reason(reason: str, *, has_functions: bool) -> ChatFinishReason:
    """Return the worker's finish reason in OpenAI's terms.

    Args:
        reason: The worker's finish reason.
        has_functions: Whether the request has `functions`, the format before tools.

    Raises:
        ApiError: The server has cancelled the answer.
    """
    found = finish_reason(reason)
    return "function_call" if has_functions and found == "tool_calls" else found


def reasoning_fields(text: str, wanted: ReasoningField) -> dict[str, Any]:
    """Return the fields with the reasoning of an answer, or with a part of it.

    Args:
        text: The reasoning.
        wanted: Their names.
    """
    names = ("reasoning_content", "reasoning") if wanted == "both" else (wanted,)
    return dict.fromkeys(names, text)


def _message(choice: ChoiceParts, *, has_functions: bool, reasoning_field: ReasoningField) -> AssistantMessage:
    message = AssistantMessage(
        content=choice.content or (None if choice.calls else ""),
        **(reasoning_fields(choice.reasoning, reasoning_field) if choice.reasoning else {}),
    )
    if choice.calls and has_functions:
        message.function_call = choice.calls[0].function
    elif choice.calls:
        message.tool_calls = choice.calls
    return message
