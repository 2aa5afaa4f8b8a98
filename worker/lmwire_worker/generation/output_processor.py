"""Turn one choice's tokens into events.

The detokenizer turns tokens into text, the output parser splits the text into content, reasoning and tool calls, and
stop strings end it.
"""

import string
from collections.abc import Callable

from lmwire_protocol import RequestError
from lmwire_protocol.commands import Generation
from lmwire_protocol.events import Channel, FinishReason, Logprob
from lmwire_protocol.limits import TOOL_CALLS

from ..engine.interface import Failed, RunnerEvent, TokenDelta, ToolCallDelta
from ..output_parsing import OutputParser, TextFragment
from ..text_stream.detokenizer import Detokenizer
from ..text_stream.logprob_attribution import LogprobAttribution
from ..text_stream.string_matcher import StringAutomaton, StringMatcher
from ..tool_parsers import ToolCallFragment
from .sampling.logprobs import LogprobHandle

CALL_ID_CHARACTERS = string.ascii_letters + string.digits
CALL_ID_LENGTH = 9
"""Mistral's chat templates accept no other length."""


class OutputProcessor:
    """The output of one choice.

    Args:
        key: The scheduler's name for the request.
        choice: Index of the choice in the request.
        request: The request's parameters.
        max_tokens: Maximum number of tokens to generate, without an eos token.
        eos_token_ids: The model's end-of-turn tokens.
        detokenizer: Turns tokens into text.
        answer: Splits the text into channels and tool calls; None if all text is content.
        stops: The request's stop strings; None without any.
        format_logprob: Turns a log-probability into the form of the protocol.
    """

    def __init__(
        self,
        key: int,
        choice: int,
        request: Generation,
        *,
        max_tokens: int,
        eos_token_ids: set[int],
        detokenizer: Detokenizer,
        answer: OutputParser | None,
        stops: StringAutomaton | None,
        format_logprob: Callable[[LogprobHandle], Logprob],
    ) -> None:
        self.choice = choice
        self.token_ids: list[int] = []
        """The tokens so far, without an eos token."""
        self.remaining_tokens = max_tokens
        self.ended = False
        self._key = key
        self._include_stop = request.include_stop
        self._eos_token_ids = eos_token_ids
        self._detokenizer = detokenizer
        self._answer = answer
        self._stops = stops
        self._scanner: StringMatcher | None = None
        self._channel: Channel = "content"
        """Channel of the text that the stop strings are searched in."""
        self._is_call_text = False
        """True if that text is the text of an invalid tool call."""
        self._format_logprob = format_logprob
        self._attribution = LogprobAttribution() if request.logprobs else None
        self._has_one_call = not getattr(request, "parallel_tool_calls", True)
        self._must_call = getattr(request, "tool_choice", None) == "required"
        self._open_call = ""
        """Name and arguments so far of a call that is not complete."""
        self._held: list[ToolCallDelta] = []
        """The events of that call, as long as it may repeat an earlier one."""
        self._calls: set[str] = set()

    def add(self, token: int, logprob: LogprobHandle | None, drafted: bool) -> list[RunnerEvent]:
        """Return the events of a token.

        Args:
            token: The token.
            logprob: Its log-probability, if the request asks for it.
            drafted: Whether the draft model proposed it.
        """
        delta = TokenDelta(self._key, generated=1, choice=self.choice, drafted=int(drafted))
        if self._answer is not None:
            delta.channel = self._answer.channel
        if token in self._eos_token_ids:
            delta.eos_token_id = token
            delta.reasoning_tokens = int(delta.channel == "reasoning")
            return self._flush("stop", delta)
        return self._add_text(token, logprob, delta)

    def finish(self, finish_reason: FinishReason | None) -> list[RunnerEvent]:
        """Return the last events, with all text that was held back."""
        return self._flush(finish_reason, TokenDelta(self._key, choice=self.choice))

    def fail(self, code: str, problem: str, field: str | None = None) -> list[RunnerEvent]:
        """End the choice with an error, and return that as an event.

        Args:
            code: The error code.
            problem: The error message.
            field: The request's field that is at fault.
        """
        self.ended = True
        return [Failed(self._key, RequestError(code, problem, field=field))]

    def _add_text(self, token: int, logprob: LogprobHandle | None, delta: TokenDelta) -> list[RunnerEvent]:
        text = self._detokenizer.add(token)
        self.remaining_tokens -= 1
        self.token_ids.append(token)
        if self._attribution is None or logprob is None:
            delta.token_ids.append(token)
        else:
            self._attribution.add(self._format_logprob(logprob), text)
        events: list[RunnerEvent] = [delta]
        end = self._add_parts(events, self._parse(text))
        if self._answer is not None and "reasoning" in (delta.channel, self._answer.channel):
            delta.reasoning_tokens = 1
        if end is not None:
            return self._end(events, *end)
        if self.remaining_tokens == 0:
            return self._flush("length", *events)
        return events

    def _flush(self, finish_reason: FinishReason | None, *before: RunnerEvent) -> list[RunnerEvent]:
        """Release all text that was held back, and end the choice."""
        events = list(before)
        rest = self._detokenizer.flush(is_cut=finish_reason != "stop")
        if self._attribution is not None:
            self._attribution.flush(rest)
        end = self._add_parts(events, self._parse(rest))
        if end is None and self._answer is not None:
            end = self._add_parts(events, self._answer.end(finish_reason == "stop"))
        if end is None:
            self._flush_scanner(events)
            called = finish_reason == "stop" and self._answer is not None and self._answer.calls
            end = ("tool_calls" if called else finish_reason, None)
        return self._end(events, *(end if finish_reason else (None, None)))

    def _end(
        self, events: list[RunnerEvent], finish_reason: FinishReason | None, stop: str | None
    ) -> list[RunnerEvent]:
        last = events[-1]
        if not isinstance(last, TokenDelta):
            last = TokenDelta(self._key, choice=self.choice)
            events.append(last)
        if self._attribution is not None:
            _add_logprobs(last, self._attribution.end())
        last.finish_reason = finish_reason
        last.stop = stop
        self.ended = True
        return events

    def _parse(self, text: str) -> list[TextFragment | ToolCallFragment]:
        if self._answer is not None:
            return self._answer.push(text)
        return [TextFragment("content", text)] if text else []

    def _add_parts(
        self, events: list[RunnerEvent], parts: list[TextFragment | ToolCallFragment]
    ) -> tuple[FinishReason, str | None] | None:
        """Append events of parsed text; return finish reason and stop string if the text ends the choice."""
        for part in parts:
            if isinstance(part, ToolCallFragment):
                if (end := self._add_call(events, part)) is not None:
                    return end
                continue
            if (part.channel, part.call) != (self._channel, self._is_call_text):
                self._flush_scanner(events)
                self._channel, self._is_call_text = part.channel, part.call
            if self._attribution is not None:
                self._attribution.take(part.text, self._attribution.length if self._answer is None else part.end)
            text, stop = part.text, None
            if self._stops is not None and not part.call:
                self._scanner = self._scanner or StringMatcher(self._stops)
                text, stop = self._scanner.push(text)
                if stop is not None and self._include_stop:
                    text += stop
            self._append_text(events, text)
            if stop is not None:
                if self._attribution is not None:
                    self._attribution.drop()
                return "stop", stop
        return None

    def _add_call(self, events: list[RunnerEvent], part: ToolCallFragment) -> tuple[FinishReason, str | None] | None:
        self._flush_scanner(events)
        call_id = part.call_id
        if part.name is not None and call_id is None:
            call_id = _new_call_id()  # most models write none
        self._held.append(
            ToolCallDelta(self._key, part.index, self.choice, call_id, part.name, part.arguments, part.complete)
        )
        self._open_call += f"{part.name or ''}{part.arguments}"
        if self._may_repeat(part.complete):
            return ("tool_calls", None) if part.complete else None
        events += self._held
        self._held = []
        if part.complete is None:
            return None
        call, self._open_call = self._open_call, ""
        if part.complete:
            self._calls.add(call)
        is_last = part.complete and (self._has_one_call or len(self._calls) == TOOL_CALLS)
        return ("tool_calls", None) if is_last else None

    def _may_repeat(self, complete: bool | None) -> bool:
        """Return whether the open call may become an earlier one or, if it is complete, whether it is one.

        A model that must call may never end its turn, and repeat a call. Nobody wants that call, and a sent one cannot
        be withdrawn.
        """
        if not self._must_call or complete is False:
            return False
        if complete:
            return self._open_call in self._calls
        return any(call.startswith(self._open_call) for call in self._calls)

    def _flush_scanner(self, events: list[RunnerEvent]) -> None:
        """Release text that could have become a stop string, and cannot any more."""
        if self._scanner is not None:
            self._append_text(events, self._scanner.flush())

    def _append_text(self, events: list[RunnerEvent], text: str) -> None:
        """Append text of the current channel: to the last event if that has the same channel, else to a new one."""
        if not text:
            return
        last = events[-1] if events else None
        if not (isinstance(last, TokenDelta) and self._accepts_text(last)):
            events.append(last := TokenDelta(self._key, choice=self.choice))
        last.channel, last.is_call_text = self._channel, self._is_call_text
        last.text += text
        if self._attribution is not None:
            _add_logprobs(last, self._attribution.send(text, (self._channel, self._is_call_text)))

    def _accepts_text(self, delta: TokenDelta) -> bool:
        """Return whether text of the current channel can be appended to an event."""
        if (delta.channel, delta.is_call_text) == (self._channel, self._is_call_text):
            return True
        return not (delta.text or delta.token_ids)


def _add_logprobs(delta: TokenDelta, logprobs: list[Logprob]) -> None:
    if logprobs:
        delta.token_ids += [logprob.token_id for logprob in logprobs]
        delta.logprobs = [*(delta.logprobs or ()), *logprobs]


def _new_call_id() -> str:
    import secrets  # loads OpenSSL, and few answers have calls

    return "".join(secrets.choice(CALL_ID_CHARACTERS) for _ in range(CALL_ID_LENGTH))
