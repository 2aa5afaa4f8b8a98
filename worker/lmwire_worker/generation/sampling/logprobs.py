"""Log-probabilities of sampled tokens and of their alternatives, at no cost to rows that do not ask for them.

They are the model's own: of its logits before penalties, bias, masks, temperature and filters. A row gets the most
alternatives that any request may ask for, and the request's number is cut from them at the end, so that what a row
gets cannot depend on its neighbours.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from lmwire_protocol.commands import Generation
from lmwire_protocol.events import Logprob, TopLogprob
from lmwire_protocol.limits import LOGPROB_CHARACTERS

if TYPE_CHECKING:
    from .logprob_step import LogprobStep


class BatchLogprobs:
    """Computes log-probabilities in each step. Valid until rows join or leave the batch.

    Args:
        requests: The request of each row.
        xp: `mlx.core` or `numpy`; by default the faster one on the device.
    """

    def __init__(self, requests: Sequence[Generation], *, xp: Any = None) -> None:
        self._xp = xp
        self._requests = requests
        rows = [row for row, request in enumerate(requests) if request.logprobs]
        self._rows = None if len(rows) == len(requests) else mx.array(rows, mx.int32)
        self._asking = rows
        self._most = max((request.top_logprobs for request in requests), default=0)
        self.pending: list[mx.array] = []
        """Arrays that the newest handles need. The caller evaluates them together with the step."""

    def __call__(self, logits: mx.array, tokens: mx.array) -> "list[LogprobHandle | None]":
        """Return the handle of each row, None for a row that does not ask.

        Args:
            logits: The model's logits [B, V].
            tokens: The sampled tokens [B].
        """
        handles: list[LogprobHandle | None] = [None] * len(self._requests)
        if not self._asking:
            return handles
        if self._rows is not None:
            logits, tokens = logits[self._rows], tokens[self._rows]
        from .logprob_step import LogprobStep  # needs numpy, and few requests ask

        step = LogprobStep(logits.astype(mx.float32), tokens, self._most, self._xp)
        self.pending = step.pending
        for index, row in enumerate(self._asking):
            handles[row] = LogprobHandle(step, index, self._requests[row].top_logprobs)
        return handles


def score_tokens(logits: mx.array, tokens: list[int], count: int) -> "list[LogprobHandle]":
    """Return a handle of each token's log-probability.

    Args:
        logits: The model's logits [N, V] in the places of the tokens.
        tokens: The tokens, N of them.
        count: Number of most probable tokens in each place.
    """
    from .logprob_step import LogprobStep  # needs numpy, and few requests ask

    step = LogprobStep(logits.astype(mx.float32), mx.array(tokens, mx.uint32), count)
    return [LogprobHandle(step, index, count) for index in range(len(tokens))]


class LogprobHandle:
    """One row's sampled token. Its log-probabilities are computed when they are needed."""

    __slots__ = ("_count", "_index", "_step")

    def __init__(self, step: "LogprobStep", index: int, count: int) -> None:
        self._step = step
        self._index = index
        self._count = count

    def resolve(self) -> tuple[int, float, list[tuple[int, float]]]:
        """Return the token, its log-probability, and the most probable tokens with theirs."""
        tokens, own, ids, values = self._step.results
        index, count = self._index, self._count
        top = list(zip(ids[index][:count], values[index][:count], strict=True))
        return tokens[index], own[index], top


class LogprobFormatter:
    """Turns log-probabilities into the form of the protocol.

    Args:
        token_bytes: Returns the bytes of a token.
    """

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        self._texts = _Texts(token_bytes)

    def __call__(self, handle: LogprobHandle) -> Logprob:
        """Return the log-probabilities of a token."""
        token, logprob, top = handle.resolve()
        texts = self._texts
        text, data = texts[token]
        described = Logprob(token, text, _number(logprob), data)
        for other, value in top:
            text, data = texts[other]
            described.top.append(TopLogprob(other, text, _number(value), data))
        return described

    def text(self, token: int) -> str:
        """Return the text of a token, of bounded length."""
        return self._texts[token][0]

    def without_logprob(self, token: int) -> Logprob:
        """Return a token that has no log-probability, since it is the first one."""
        text, data = self._texts[token]
        return Logprob(token, text, None, data)


class _Texts(dict[int, tuple[str, list[int] | None]]):
    """The text of each token, and its bytes if the text is incomplete; computed when first needed."""

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        super().__init__()
        self._token_bytes = token_bytes

    def __missing__(self, token: int) -> tuple[str, list[int] | None]:
        data = self._token_bytes(token)
        text = data.decode(errors="replace")[:LOGPROB_CHARACTERS]
        try:
            data.decode()
            self[token] = text, None
        except UnicodeDecodeError:
            self[token] = text, list(data[:LOGPROB_CHARACTERS])
        return self[token]


def _number(logprob: float) -> float | None:
    return logprob if math.isfinite(logprob) else None
