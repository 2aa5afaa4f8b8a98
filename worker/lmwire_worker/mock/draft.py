"""The tokens of a whole choice, before any is delivered."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count, cycle, islice
from typing import NamedTuple

from lmwire_protocol import Chat, Generate
from lmwire_protocol.events import Channel
from lmwire_protocol.limits import EFFORT_BUDGETS

from .prompts import words
from .replies import Answer, Call, Reply


class CallToken(NamedTuple):
    """The part of a tool call that a token stands for."""

    number: int
    """Index of the call in the answer."""
    opens: Call | None = None
    """The call; only in its first token."""
    arguments: str = ""
    complete: bool | None = None
    """Validity of the call; only in its last token."""


class Token(NamedTuple):
    """A token of an answer."""

    id: int
    """Index of the token in the answer."""
    text: str
    seconds: float
    """Time that the token takes."""
    channel: Channel = "content"
    call: CallToken | None = None


class Draft:
    """The tokens of one choice.

    Args:
        request: The request.
        reply: Its speed, and whether it repeats.
        answer: The scripted answer.
        prompt: The prompt's words, at least one.
        room: Tokens that still fit into the context.
        raw: All text is content, without reasoning and tool calls.

    Attributes:
        count: Number of tokens.
        is_cut: Whether a limit makes the choice shorter.
    """

    def __init__(
        self, request: Generate | Chat, reply: Reply, answer: Answer, prompt: Sequence[str], *, room: int, raw: bool
    ) -> None:
        usual = reply.token_ms / 1000
        place = count()
        thinking: Channel = "content" if raw or isinstance(request, Generate) else "reasoning"
        thought = [Token(next(place), word, usual, thinking) for word in _thought(request, answer, prompt)]
        said = [
            Token(next(place), token.text, usual if token.delay_ms is None else token.delay_ms / 1000)
            for token in answer.content(prompt)
        ]
        calls = [
            Token(next(place), text, usual, call=None if raw else piece)
            for text, piece in _called(request, answer.tool_calls)
        ]
        self._tokens = [*thought, *said, *calls]
        self._again = said or [Token(id, word, usual) for id, word in enumerate(prompt)]
        repeats = reply.then == "repeat" or (answer.echoes and request.max_tokens is not None)
        endless = request.ignore_eos or (repeats and bool(self._tokens))
        wanted = math.inf if endless else max(len(self._tokens), request.min_tokens)
        limit = room if request.max_tokens is None else min(request.max_tokens, room)
        self.count = int(min(wanted, limit))
        self.is_cut = wanted > limit

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens in order. An answer that has to go on repeats its content."""
        return islice(chain(self._tokens, cycle(self._again)), self.count)

    def text_of(self, id: int) -> str:
        """Return a token's text, or a placeholder for an id that is not in the answer."""
        return self._tokens[id].text if id < len(self._tokens) else f"<{id}>"


def reads_calls(request: Generate | Chat) -> bool:
    """Return whether the request separates tool calls from text."""
    return isinstance(request, Chat) and bool(request.callable_tools)


def _thought(request: Generate | Chat, answer: Answer, prompt: Sequence[str]) -> Sequence[str]:
    reasoning = words(answer.reasoning or "")
    if isinstance(request, Generate):
        return reasoning
    if request.reasoning == "on":
        reasoning = reasoning or prompt
    budget = request.reasoning_budget
    if budget is None and request.reasoning_effort is not None:
        budget = EFFORT_BUDGETS.get(request.reasoning_effort)
    return [] if request.reasoning == "off" else reasoning[:budget]


def _called(request: Generate | Chat, calls: Sequence[Call]) -> Iterator[tuple[str, CallToken | None]]:
    """Yield the tokens of the calls: each call's name, its arguments up to each comma and colon, its end."""
    told = reads_calls(request)
    for index, call in enumerate(calls):
        arguments = re.findall(r"[^,:]*[,:]|[^,:]+", call.json)
        tokens = [
            (f'{{"name":"{call.name}","arguments":', CallToken(index, opens=call)),
            *((piece, CallToken(index, arguments=piece)) for piece in arguments),
            ("}", CallToken(index, complete=call.is_whole)),
        ]
        yield from ((text, piece if told else None) for text, piece in tokens)
        if told and call.is_whole and isinstance(request, Chat) and not request.parallel_tool_calls:
            return
