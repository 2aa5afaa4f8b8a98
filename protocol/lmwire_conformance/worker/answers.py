"""The answers to one request, put together from its events: text by channel, tokens, tool calls."""

import contextlib
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from lmwire_protocol import Chat, Generation, Tokenize, limits
from lmwire_protocol.events import Logprob, Token, ToolCall

from ..violation import Violation
from .line_checks import json_bytes

RULES: Final = ("F-14", "K-5", "K-7", "N-3", "P-2", "Q-1", "#generate", "#token", "#tool_call", "#tokenize")
"""The rules that this module checks on every event of every answer."""

_NOT_JSON: Final = (msgspec.DecodeError, RecursionError)
"""Errors in decoding a call's arguments, which are any text that the worker sends."""


@dataclass
class ReceivedCall:
    """A tool call, as far as its events have come."""

    call_id: str
    name: str
    arguments: str = ""
    complete: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the call for patterns. Its arguments are decoded if they are JSON."""
        fields = {"call_id": self.call_id, "name": self.name, "arguments": self.arguments, "complete": self.complete}
        with contextlib.suppress(*_NOT_JSON):
            fields["arguments"] = msgspec.json.decode(self.arguments)
        return fields


@dataclass
class ReceivedAnswer:
    """One of a request's answers, as far as its events have come."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    """The texts by channel."""
    token_ids: list[int] = field(default_factory=list[int])
    calls: list[ReceivedCall] = field(default_factory=list[ReceivedCall])
    logprobs: list[Logprob] = field(default_factory=list[Logprob])
    call_text: str = ""
    """The text that is marked with `call`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for patterns."""
        return {
            "text": self.texts.get("content", ""),
            "reasoning": self.texts.get("reasoning", ""),
            "token_ids": self.token_ids,
            "tool_calls": [call.to_dict() for call in self.calls],
            "logprobs": [msgspec.to_builtins(logprob) for logprob in self.logprobs],
        }


class ReceivedAnswers:
    """The answers to one request.

    Args:
        command: The command, if it has token events.
    """

    def __init__(self, command: Generation | Tokenize | None) -> None:
        self._command = command
        self.all = [ReceivedAnswer() for _ in range(command.n if isinstance(command, Generation) else 1)]

    def add_token(self, event: Token, line: bytes) -> None:
        """Add a token event.

        Args:
            event: The event.
            line: The same as the worker wrote it.

        Raises:
            Violation: The request cannot have this event.
        """
        if json_bytes(event.token) > limits.TEXT_BYTES:
            raise Violation(("F-14",), f"at most {limits.TEXT_BYTES} bytes of text in one event", line)
        answer = self._answer(event.choice, line)
        if event.channel != "content" and not isinstance(self._command, Chat):
            raise Violation(("#generate", "#tokenize"), "no reasoning: all text is content", line)
        if isinstance(self._command, Tokenize) and self._command.count_only:
            raise Violation(("#tokenize",), "no token events with `count_only`", line)
        if event.call and not self._may_call:
            raise Violation(("K-5", "P-2"), "no text marked with `call`: the request has no tools to call", line)
        self._check_logprobs(event, line)
        if event.call:
            answer.call_text += event.token
        answer.texts[event.channel] = answer.texts.get(event.channel, "") + event.token
        answer.token_ids += event.token_ids
        answer.logprobs += event.logprobs or ()

    def add_call(self, event: ToolCall, line: bytes) -> None:
        """Add a tool_call event.

        Args:
            event: The event.
            line: The same as the worker wrote it.

        Raises:
            Violation: The request cannot have this event.
        """
        if json_bytes(event.arguments) > limits.TEXT_BYTES:
            raise Violation(("F-14",), f"at most {limits.TEXT_BYTES} bytes of arguments in one event", line)
        if not self._may_call:
            raise Violation(("P-2",), "no calls: the request has no tools to call", line)
        calls = self._answer(event.choice, line).calls
        if event.index == len(calls):
            self._begin(calls, event, line)
        elif event.index != len(calls) - 1 or calls[-1].complete is not None:
            raise Violation(("Q-1",), f"a part of the call that is open, or call {len(calls)}", line)
        elif event.call_id is not None or event.name is not None:
            raise Violation(("#tool_call",), "`call_id` and `name` in the call's first event alone", line)
        calls[-1].arguments += event.arguments
        calls[-1].complete = event.complete
        if event.complete and not _is_object(calls[-1].arguments):
            raise Violation(("Q-1",), f"arguments that are a JSON object, not {calls[-1].arguments!r}", line)

    @property
    def _may_call(self) -> bool:
        command = self._command
        return isinstance(command, Chat) and bool(command.tools) and command.tool_choice != "none"

    def _answer(self, choice: int, line: bytes) -> ReceivedAnswer:
        if choice >= len(self.all):
            raise Violation(("N-3",), f"a choice below {len(self.all)}", line)
        return self.all[choice]

    def _begin(self, calls: list[ReceivedCall], event: ToolCall, line: bytes) -> None:
        if event.call_id is None or event.name is None:
            raise Violation(("#tool_call",), "`call_id` and `name` in the call's first event", line)
        if calls and calls[-1].complete is None:
            raise Violation(("Q-1",), f"the last event of call {len(calls) - 1} first", line)
        if any(call.call_id == event.call_id for call in calls):
            raise Violation(("#tool_call",), "a `call_id` that no other call of the answer has", line)
        calls.append(ReceivedCall(event.call_id, event.name))

    def _check_logprobs(self, event: Token, line: bytes) -> None:
        wanted = isinstance(self._command, Generation) and self._command.logprobs
        if len(event.logprobs or ()) != (len(event.token_ids) if wanted else 0):
            expected = "one log-probability for each of token_ids" if wanted else "no log-probabilities, nobody asked"
            raise Violation(("#token",), expected, line)
        for token, logprob in zip(event.token_ids, event.logprobs or (), strict=False):
            values = [top.logprob for top in logprob.top if top.logprob is not None]
            if logprob.token_id != token:
                raise Violation(("#token",), f"the log-probability of the token {token}", line)
            if isinstance(self._command, Generation) and len(logprob.top) != self._command.top_logprobs:
                raise Violation(("#token",), f"the {self._command.top_logprobs} most probable tokens", line)
            if values != sorted(values, reverse=True):
                raise Violation(("#token",), "the most probable tokens first", line)


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except _NOT_JSON:
        return False
