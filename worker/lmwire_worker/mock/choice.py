"""One choice of a request, step by step: a token on its channel, or a part of a tool call."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lmwire_protocol import Chat, Generate
from lmwire_protocol.events import Channel, FinishReason, Logprob, TopLogprob
from lmwire_protocol.limits import LOGPROB_CHARACTERS

from ..engine.interface import RunnerEvent, TokenDelta, ToolCallDelta
from .draft import CallToken, Draft, Token
from .replies import Answer, Reply

if TYPE_CHECKING:
    from ..text_stream.logprob_attribution import LogprobAttribution
    from ..text_stream.string_matcher import StringMatcher

_UNLIKELY = -1000.0
"""Log-probability of the second best token. The third has twice this value, and so on."""


class Choice:
    """One choice while it is delivered.

    Args:
        key: The request's key.
        index: The choice's index.
        request: The request.
        reply: Tells whether the choice ends.
        answer: The scripted answer.
        draft: Its tokens.
    """

    def __init__(
        self, key: int, index: int, request: Generate | Chat, reply: Reply, answer: Answer, draft: Draft
    ) -> None:
        self._key = key
        self._index = index
        self._request = request
        self._answer = answer
        self._draft = draft
        self._has_no_end = reply.has_no_end
        self._stops = _scanner(request.stop) if request.stop else None
        self._plain = self._stops is None and not request.logprobs
        """Each token is its text alone: the fast path for benchmarks."""
        self._channel: Channel = "content"
        self._call_index = 0
        self._call: list[str] = []
        """The text of the unfinished call."""
        self._has_called = False
        self._attribution = _attribution() if request.logprobs else None

    def play(self) -> Iterator[list[RunnerEvent] | float]:
        """Yield the events of each step, and pauses in seconds."""
        if self._draft.count == 0:
            yield self._end([])
        for number, token in enumerate(self._draft.tokens(), 1):
            if token.seconds:
                yield token.seconds
            if self._plain and token.channel == "content" and not token.call:
                outcomes: list[RunnerEvent] = [
                    TokenDelta(self._key, token.text, [token.id], 1, None, None, self._index)
                ]
            else:
                outcomes = self._show(token)
            yield self._end(outcomes) if number == self._draft.count else outcomes

    def cancel(self) -> list[RunnerEvent]:
        """Return the delayed text of a choice that ends here."""
        outcomes = self._let_go([])
        self._attach_rest(outcomes)
        for outcome in outcomes:
            if isinstance(outcome, TokenDelta):
                outcome.finish_reason = outcome.stop = None
        return outcomes

    def _show(self, token: Token) -> list[RunnerEvent]:
        outcomes: list[RunnerEvent] = []
        if token.call or token.channel != self._channel:
            self._release(outcomes)
        self._channel = token.channel
        piece = TokenDelta(self._key, "", [], 1, choice=self._index, channel=token.channel)
        piece.reasoning_tokens = 1 if token.channel == "reasoning" else 0
        if self._attribution is None:
            piece.token_ids.append(token.id)
        else:
            self._attribution.add(self._logprob(token), token.text)
        outcomes.append(piece)
        if token.call:
            self._show_call(token.call, token.text, outcomes)
        else:
            self._say(token.text, piece)
        return outcomes

    def _say(self, text: str, piece: TokenDelta) -> None:
        """Add the certain part of a text to a delta."""
        if self._attribution is not None:
            self._attribution.take(text, self._attribution.length)
        if self._stops is None:
            self._give(piece, text)
            return
        text, piece.stop = self._stops.push(text)
        if piece.stop is not None:
            piece.finish_reason = "stop"
            text += piece.stop if self._request.include_stop else ""
        self._give(piece, text)
        if piece.stop is not None and self._attribution is not None:
            self._attach(piece, self._attribution.end())

    def _give(self, piece: TokenDelta, text: str) -> None:
        """Add text to a delta, with its tokens if their log-probabilities are asked for."""
        piece.text += text
        if self._attribution is not None:
            self._attach(piece, self._attribution.send(text, (piece.channel, piece.is_call_text)))

    def _attach(self, piece: TokenDelta, logprobs: list[Logprob]) -> None:
        if logprobs:
            piece.token_ids += [logprob.token_id for logprob in logprobs]
            piece.logprobs = [*(piece.logprobs or ()), *logprobs]

    def _show_call(self, token: CallToken, text: str, outcomes: list[RunnerEvent]) -> None:
        self._call_index = token.number
        self._call.append(text)
        if token.complete is False:
            self._give_back(outcomes)
            return
        piece = ToolCallDelta(self._key, token.number, self._index, arguments=token.arguments, complete=token.complete)
        if token.opens:
            piece.name = token.opens.name
            piece.call_id = token.opens.id or f"call_{self._key}_{self._index}_{token.number}"
        outcomes.append(piece)
        if token.complete:
            self._has_called = True
            self._call.clear()

    def _give_back(self, outcomes: list[RunnerEvent]) -> None:
        """End an incomplete call: its text becomes content."""
        piece = TokenDelta(self._key, choice=self._index, is_call_text=True)
        text = "".join(self._call)
        if self._attribution is not None:
            self._attribution.take(text, self._attribution.length)
        self._give(piece, text)
        self._call.clear()
        outcomes += [ToolCallDelta(self._key, self._call_index, self._index, complete=False), piece]

    def _let_go(self, outcomes: list[RunnerEvent]) -> list[RunnerEvent]:
        """Add all delayed text."""
        if self._call:
            self._give_back(outcomes)
        return self._release(outcomes)

    def _release(self, outcomes: list[RunnerEvent]) -> list[RunnerEvent]:
        """Add the text that was delayed, because it does not become a stop string."""
        if self._stops and (text := self._stops.flush()):
            self._give(self._last(outcomes), text)
        return outcomes

    def _end(self, outcomes: list[RunnerEvent]) -> list[RunnerEvent]:
        """Add the end to the last step's events, unless the reply has none."""
        if not (self._has_no_end or has_ended(outcomes)):
            self._let_go(outcomes)
            if not has_ended(outcomes):
                self._last(outcomes).finish_reason = self._reason()
        if has_ended(outcomes):
            self._attach_rest(outcomes)
        return outcomes

    def _attach_rest(self, outcomes: list[RunnerEvent]) -> None:
        """Add the tokens whose text was not delivered."""
        if self._attribution is not None and (rest := self._attribution.end()):
            self._attach(self._last(outcomes), rest)

    def _last(self, outcomes: list[RunnerEvent]) -> TokenDelta:
        """Return the last delta; add an empty one if the last event is not a delta."""
        last = outcomes[-1] if outcomes else None
        if not isinstance(last, TokenDelta):
            outcomes.append(last := TokenDelta(self._key, choice=self._index, channel=self._channel))
        return last

    def _reason(self) -> FinishReason:
        if self._draft.is_cut:
            return "length"
        return "tool_calls" if self._has_called and self._answer.finish_reason == "stop" else self._answer.finish_reason

    def _logprob(self, token: Token) -> Logprob:
        """Return a log-probability of 0 for the token, and low ones for the next ids."""
        top = [TopLogprob(token.id, token.text[:LOGPROB_CHARACTERS], 0.0)]
        for place in range(1, self._request.top_logprobs):
            id = token.id + place
            top.append(TopLogprob(id, self._draft.text_of(id)[:LOGPROB_CHARACTERS], _UNLIKELY * place))
        return Logprob(token.id, top[0].token, 0.0, top=top[: self._request.top_logprobs])


def score(prompt: Sequence[str], count: int) -> list[Logprob]:
    """Return the log-probabilities of a prompt's words: absent for the first, and then 0.

    Args:
        prompt: The words.
        count: Number of alternatives in each place. The others have the next ids, and low log-probabilities.
    """
    scored: list[Logprob] = []
    for id, word in enumerate(prompt):
        own = TopLogprob(id, word[:LOGPROB_CHARACTERS], 0.0)
        others = [TopLogprob(id + place, f"<{id + place}>", _UNLIKELY * place) for place in range(1, count)]
        top = [own, *others][:count] if id else []
        scored.append(Logprob(id, own.token, 0.0 if id else None, top=top))
    return scored


def has_ended(outcomes: list[RunnerEvent]) -> bool:
    """Return whether these events end a choice."""
    last = outcomes[-1] if outcomes else None
    return isinstance(last, TokenDelta) and last.finish_reason is not None


def _attribution() -> "LogprobAttribution":
    from ..text_stream.logprob_attribution import LogprobAttribution

    return LogprobAttribution()


def _scanner(strings: list[str]) -> "StringMatcher":
    from ..text_stream.string_matcher import StringAutomaton, StringMatcher

    return StringMatcher(StringAutomaton(strings))
