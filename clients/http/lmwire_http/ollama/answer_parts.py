"""Parts of an answer, as Ollama's clients receive them: text, reasoning, and whole tool calls."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from lmwire import TokenDelta, ToolCallDelta

from ..inference.answers import TokenLogprob, content_logprobs
from ..inference.call_ids import OPENAI_PREFIX, client_call_id
from .response_schema import CalledFunction, ToolCall


@dataclass(slots=True)
class AnswerPart:
    """A part of an answer. Its reasoning comes before its content, and that before its calls."""

    thinking: str = ""
    content: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list[ToolCall])
    logprobs: list[TokenLogprob] = field(default_factory=list[TokenLogprob])


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
