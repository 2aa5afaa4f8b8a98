"""A lane without a model. It proves the contract of `lane.py`, and carries tests and benchmarks of all around it.

A prompt's tokens are its words. Without another reply they are the answer too, again and again up to max_tokens, or
once without. A token's id is its place among those of the answer.
"""

import time
from collections.abc import Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING

from lmwire_protocol import Chat, Generate, RequestError

from ..lane import Failed, Memory, Model, Outcome, Piece, Prefilled
from .scenario import Reply, Script, said, words

if TYPE_CHECKING:
    from ..text.stops import StopScanner

_CONTEXT_LEN = 1 << 20
_ROWS = 64
_PREFILL_TOKENS = 512
_NAP_SECONDS = 0.005
"""How long a step lasts at most while no token is due: how late a cancel may be."""
_ECHO = Reply()


class _Row:
    """One request: what still happens to it, and when.

    `acts` yields outcomes, one a step, and numbers: seconds until the next.
    """

    __slots__ = ("acts", "due", "stops")

    def __init__(self, acts: Iterator[Outcome | float], stops: "StopScanner | None") -> None:
        self.acts = acts
        self.due = 0.0
        self.stops = stops


class MockLane:
    """Plays replies.

    Args:
        path: what it was loaded as.
        step_seconds: how long each step takes at least.
        script: the replies to requests; what none is for is echoed.
    """

    rows = _ROWS

    def __init__(self, path: str, step_seconds: float, script: Script) -> None:
        self.model = Model(
            path=path,
            model_type="mock",
            vocab_size=_CONTEXT_LEN,
            layers=0,
            hidden_size=0,
            context_len=_CONTEXT_LEN,
            weights_bytes=0,
            capabilities=["generate", "chat"],
        )
        self._step_seconds = step_seconds
        self._script = script
        self._held: dict[int, _Row] = {}

    def add(self, key: int, request: Generate | Chat, seed: int) -> int:
        """Takes the words of the prompt, or of the last message."""
        _check_vocabulary(request)
        prompt = words(said(request))
        if not prompt:
            raise RequestError("invalid_request", "the prompt is empty", field="prompt")
        if len(prompt) >= _CONTEXT_LEN:
            raise RequestError("context_overflow", f"the prompt has {len(prompt)} tokens, the context {_CONTEXT_LEN}")
        reply = self._script.reply_to(request) or _ECHO
        stops = _scanner(request.stop) if request.stop else None
        self._held[key] = _Row(_acts(key, reply, prompt, request.max_tokens, stops), stops)
        return len(prompt)

    def step(self) -> list[Outcome]:
        """What is due by now, of each request one thing; waits a little when nothing is."""
        if self._step_seconds:
            time.sleep(self._step_seconds)
        now = time.monotonic()
        outcomes: list[Outcome] = []
        for key, row in list(self._held.items()):
            if row.due > now:
                continue
            act = next(row.acts)
            if isinstance(act, int | float):
                row.due = now + act
                continue
            outcomes.append(act)
            if isinstance(act, Failed) or (isinstance(act, Piece) and act.finish_reason):
                del self._held[key]
        if not outcomes:
            time.sleep(max(0.0, min(_NAP_SECONDS, min(row.due for row in self._held.values()) - now)))
        return outcomes

    def remove(self, key: int) -> Piece:
        """Forgets the request."""
        row = self._held.pop(key)
        return Piece(key, row.stops.flush() if row.stops else "")

    def memory(self) -> Memory:
        """None is used."""
        return Memory()

    def close(self) -> int:
        """Frees nothing."""
        return 0


def _check_vocabulary(request: Generate | Chat) -> None:
    """Refuses token ids that no prompt of this model can have."""
    if isinstance(request, Generate) and not isinstance(request.prompt, str) and max(request.prompt) >= _CONTEXT_LEN:
        index = next(index for index, token in enumerate(request.prompt) if token >= _CONTEXT_LEN)
        problem = f"prompt[{index}]: {request.prompt[index]} is no token of this model, which has {_CONTEXT_LEN}"
        raise RequestError("invalid_request", problem, field=f"prompt[{index}]")


def _acts(
    key: int, reply: Reply, prompt: list[str], max_tokens: int | None, stops: "StopScanner | None"
) -> Iterator[Outcome | float]:
    """What happens to a request, in order. An end of its own is the last that is asked for."""
    if reply.delay_ms:
        yield reply.delay_ms / 1000
    yield from _prefill(key, reply, len(prompt))
    yield from _answer(key, reply, prompt, max_tokens, stops)
    if reply.error:
        yield Failed(key, reply.error.to_error())
    if reply.then == "hang":
        hang()
    yield float("inf")


def _answer(
    key: int, reply: Reply, prompt: list[str], max_tokens: int | None, stops: "StopScanner | None"
) -> Iterator[Outcome | float]:
    tokens = reply.pieces(echo=prompt)
    room = _CONTEXT_LEN - len(prompt)
    limit = room if max_tokens is None else min(max_tokens, room)
    repeats = bool(tokens) and (reply.then == "repeat" or (reply.echoes and max_tokens is not None))
    count = limit if repeats else min(limit, len(tokens))
    reason = "length" if repeats or count < len(tokens) else reply.finish_reason
    if reply.error or reply.then in ("wait", "hang"):
        reason = None
    if count == 0 and reason:
        yield Piece(key, finish_reason=reason)
    numbered = cycle(enumerate(tokens)) if repeats else enumerate(tokens)
    for number, (id, (text, seconds)) in enumerate(islice(numbered, count), 1):
        if seconds:
            yield seconds
        piece = Piece(key, text, [id], 1, reason if number == count else None)
        if stops:
            _hold_back(piece, stops)
        yield piece


def _hold_back(piece: Piece, stops: "StopScanner") -> None:
    piece.text, piece.stop = stops.push(piece.text)
    if piece.stop is not None:
        piece.finish_reason = "stop"
    elif piece.finish_reason:
        piece.text += stops.flush()


def _prefill(key: int, reply: Reply, prompt_tokens: int) -> Iterator[Outcome | float]:
    if not reply.progress and not reply.refuses:
        for done in range(_PREFILL_TOKENS, prompt_tokens + _PREFILL_TOKENS, _PREFILL_TOKENS):
            yield Prefilled(key, min(done, prompt_tokens), prompt_tokens)
    for stage in reply.progress:
        yield Prefilled(key, stage.current, prompt_tokens if stage.total is None else stage.total)
        if stage.delay_ms:
            yield stage.delay_ms / 1000


def hang() -> None:
    """An evaluation that never ends."""
    while True:
        time.sleep(3600)


def _scanner(strings: list[str]) -> "StopScanner":
    from ..text.stops import StopScanner, StopStrings  # the text lane's own, which knows no model library

    return StopScanner(StopStrings(strings))
