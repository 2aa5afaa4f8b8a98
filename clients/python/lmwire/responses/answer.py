"""Whole answers, assembled from their deltas."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, cast

import msgspec

from lmwire_protocol import events

from ..errors import InvalidAnswer, LmwireError
from ..options import MessageDict
from ..output_types import OutputType, Parsed
from ..protocol.deltas import TokenDelta, ToolCallDelta


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call of the model."""

    id: str
    name: str
    """The function's name."""
    arguments: dict[str, Any]

    def result(self, content: str) -> MessageDict:
        """Return a message with the call's result, to send to the model next."""
        return {"role": "tool", "tool_call_id": self.id, "name": self.name, "content": content}


class Answer(msgspec.Struct, Generic[Parsed], frozen=True, kw_only=True, repr_omit_defaults=True):
    """One whole answer."""

    text: str
    reasoning: str
    """The reasoning before the answer, which may be empty."""
    tool_calls: list[ToolCall]
    """The complete calls, in order. A call that was cut off is part of `text`."""
    finish_reason: str
    """The reason why the answer ended; see `lmwire_protocol.events.ResultDone`."""
    stop: str | None
    """The stop string that ended the answer."""
    token_ids: list[int]
    """The tokens of the text and of the reasoning."""
    logprobs: list[events.Logprob]
    """One for each of `token_ids`, if the request asked for them."""
    prompt_logprobs: list[events.Logprob] = []
    """One for each token of the prompt, in the first answer of a request that asked for them."""
    value: Parsed | InvalidAnswer | None = None
    """The value of `parsed`, or the error that it raises."""

    @property
    def parsed(self) -> Parsed:
        """Return the answer as a value of the type that `format` names, or None if it names none.

        Raises:
            InvalidAnswer: The answer was cut off, or the type refuses its content.
        """
        if isinstance(self.value, InvalidAnswer):
            raise self.value
        return cast("Parsed", self.value)

    @property
    def message(self) -> MessageDict:
        """Return the answer as a message, to continue the conversation.

        >>> worker.chat("Who are you?", max_tokens=3).answer().message
        {'role': 'assistant', 'content': 'I am the'}

        It does not contain the request's `prefix`: prepend that to its content.
        """
        message: MessageDict = {"role": "assistant", "content": self.text}
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.tool_calls
            ]
        return message


def assemble_answers(
    deltas: Sequence[TokenDelta | ToolCallDelta],
    result: events.ResultDone,
    output: OutputType[Parsed] | None = None,
) -> list[Answer[Parsed]]:
    """Assemble the answers of a request that has ended, in the order of their choices.

    Args:
        deltas: All deltas of the request.
        result: Its `done`.
        output: The type that answers are parsed as.
    """
    return [
        assemble_answer([delta for delta in deltas if delta.choice == choice], end.finish_reason, end.stop, output)
        for choice, end in enumerate(result.choices or [result])
    ]


def assemble_answer(
    deltas: Sequence[TokenDelta | ToolCallDelta],
    finish_reason: str,
    stop: str | None = None,
    output: OutputType[Parsed] | None = None,
) -> Answer[Parsed]:
    """Assemble one answer.

    Args:
        deltas: The deltas of one choice.
        finish_reason: The reason why it ended.
        stop: The stop string that ended it.
        output: The type that it is parsed as.

    Raises:
        LmwireError: The arguments of a complete call are not a JSON object.
    """
    texts = [delta for delta in deltas if isinstance(delta, TokenDelta)]
    text = "".join(delta.text for delta in texts)
    return Answer(
        text=text,
        reasoning="".join(delta.reasoning for delta in texts),
        tool_calls=_assemble_calls(delta for delta in deltas if isinstance(delta, ToolCallDelta)),
        finish_reason=finish_reason,
        stop=stop,
        token_ids=[token_id for delta in texts for token_id in delta.token_ids],
        logprobs=[logprob for delta in texts for logprob in delta.logprobs or ()],
        prompt_logprobs=[logprob for delta in texts for logprob in delta.prompt_logprobs or ()],
        value=output.parse(text, finish_reason) if output else None,
    )


def _assemble_calls(deltas: Iterable[ToolCallDelta]) -> list[ToolCall]:
    calls: dict[int, list[ToolCallDelta]] = {}
    for delta in deltas:
        calls.setdefault(delta.index, []).append(delta)
    return [_assemble_call(parts) for _, parts in sorted(calls.items()) if parts[-1].complete]


def _assemble_call(parts: list[ToolCallDelta]) -> ToolCall:
    name = parts[0].name or ""
    written = "".join(part.arguments for part in parts)
    try:
        arguments = msgspec.json.decode(written, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise LmwireError(
            f"the worker's call of {name!r} has arguments that are not a JSON object: {written!r}"
        ) from error
    return ToolCall(parts[0].call_id or "", name, arguments)
