"""Speculative decoding: a draft model proposes tokens, and the model looks at all of them in one pass.

Each position is sampled as it would be without a draft, and the first token that differs from its proposal is the last
of the step. So the draft decides how many tokens a step gives, and nothing about which.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection
from typing import Any, Final, Protocol

import mlx.core as mx
from mlx_lm.models.cache import KVCache, make_prompt_cache

from ..sampling.logprobs import LogprobHandle
from .continuous_batch import PromptProgress
from .row_cache import RowCache
from .rows import Row, StepSampler
from .target_draft_pair import TargetDraftPair

MAX_PROPOSALS: Final = 4
"""Tokens proposed in one step, at most."""


class SpeculativeRow(Row, Protocol):
    """A request as it is seen here."""

    def append_token(self, token: int, logprob: LogprobHandle | None, *, drafted: bool = False) -> bool:
        """See `Row.push`. `drafted`: the draft had proposed it."""
        ...


class SpeculativeBatch:
    """Does what a `Generator` does, for one row after another.

    Args:
        pair: The model and its draft. All of their caches are plain KV caches.
        ends: The model's end-of-turn tokens.
        structural: Tokens that XTC leaves alone.
    """

    def __init__(self, pair: TargetDraftPair, ends: set[int], structural: set[int]) -> None:
        self._pair = pair
        self._ends = ends
        self._structural = structural
        self._rows: deque[_SpeculativeState] = deque()
        """The first one is at work."""
        self._uids = 0

    def add(
        self,
        row: SpeculativeRow,
        prompt: list[int],
        cache: list[Any] | None = None,
        held: int = 0,
        borders: Collection[int] = (),
    ) -> int:
        """See `Generator.add`."""
        new = _SpeculativeState(self._uid(), row, prompt, cache or make_prompt_cache(self._pair), held, borders)
        self._rows.append(new)
        return new.uid

    def add_prefilled(self, row: SpeculativeRow, tokens: list[int], cache: list[Any]) -> int:
        """See `Generator.join`."""
        new = _SpeculativeState(self._uid(), row, tokens, cache, len(tokens) - 1)
        self._rows.insert(1, new)  # the first one is at work
        return new.uid

    def cache_of(self, uid: int) -> list[Any]:
        """See `Generator.cache_of`. No copy is made: rows write to caches that they alone have."""
        return self._find(uid).cache

    def drop(self, uid: int) -> None:
        """See `Generator.drop`."""
        row = self._find(uid)
        row.offer()
        self._rows.remove(row)

    def start_decoding(self) -> list[PromptProgress]:
        """See `Generator.begin`. A prompt's last token is looked at with what the draft proposes behind it."""
        return []

    def first_tokens(self) -> list[Any]:
        """See `Generator.first_tokens`. A step gives the tokens that it makes itself."""
        return []

    def decode(self) -> list[Any]:
        """See `Generator.decode`. A step gives the running row one token or more."""
        if not self.running:
            return []
        current = self._rows[0]
        if not self._decode(current):
            current.offer()
            self._rows.popleft()
        return [current.row]

    def admit_prompts(self, enough: int) -> int:
        """See `Generator.take_up`. One prompt is in work."""
        return int(self.has_prompts)

    def prefill(self, size: int) -> list[PromptProgress]:
        """See `Generator.prefill`. The last token's logits are the first step's, and the slices end before it."""
        row = self._rows[0]
        progress: list[PromptProgress] = []
        start, last = row.cached_tokens, len(row.tokens) - 1
        if start < last:
            stop = min(start + size, row.chunk_ends[bisect_right(row.chunk_ends, start)])
            self._pair(mx.array([row.tokens[start:stop]]), row.cache)
            mx.eval([layer.state for layer in row.cache])
            if stop in row.chunk_ends:
                row.offer()
            progress.append(row.progress(stop))
        if row.cached_tokens == last:
            row.is_prefilled = True
            row.plan(self._ends, self._structural)
            progress.append(row.progress(last + 1))
        return progress

    @property
    def running(self) -> int:
        """Rows whose prompt is done, of those at work."""
        return int(bool(self._rows) and self._rows[0].is_prefilled)

    @property
    def longest_remaining(self) -> int:
        """See `Generator.longest_left`."""
        return len(self._rows[0].tokens) - 1 - self._rows[0].cached_tokens

    @property
    def has_prompts(self) -> bool:
        """Whether the prompt of the row at work is not done."""
        return bool(self._rows) and not self._rows[0].is_prefilled

    def close(self) -> None:
        """Forgets all rows."""
        self._rows.clear()

    def _uid(self) -> int:
        self._uids += 1
        return self._uids

    def _find(self, uid: int) -> "_SpeculativeState":
        return next(row for row in self._rows if row.uid == uid)

    def _decode(self, row: "_SpeculativeState") -> bool:
        """Gives a row its next tokens. False: the last of them ended it."""
        own, drafts = self._pair.split(row.cache)
        proposals = self._propose(row, drafts)
        logits = self._pair.model(mx.array([[row.tokens[-1], *proposals]]), cache=own)
        mx.eval(logits)
        goes_on, accepted = row.take(logits, proposals)
        row.trim()
        row.proposals = min(accepted + 1, MAX_PROPOSALS)
        return goes_on

    def _propose(self, row: "_SpeculativeState", cache: list[Any]) -> list[int]:
        """The draft's most probable tokens, one after another, none that could not come any more."""
        proposals: list[int] = []
        unread = row.tokens[cache[0].offset :]
        for _ in range(min(row.proposals, row.row.remaining_tokens - 1)):
            logits = self._pair.draft_logits(mx.array([unread]), cache)
            best: Any = mx.argmax(logits[0, -1]).item()
            unread = [best]
            proposals += unread
        return proposals


class _SpeculativeState:
    """A row with what is needed to sample it.

    Args:
        uid: Its name.
        row: What it answers.
        tokens: Its prompt, or more.
        cache: Of the model and of its draft; it holds `held` of the tokens.
        held: Less than there are.
        borders: Between which tokens the prompt's slices end, besides.
    """

    def __init__(
        self,
        uid: int,
        row: SpeculativeRow,
        tokens: list[int],
        cache: list[KVCache],
        held: int,
        borders: Collection[int] = (),
    ) -> None:
        self.uid = uid
        self.row = row
        self.tokens = list(tokens)
        self.cache = cache
        last = len(tokens) - 1
        self.chunk_ends = sorted({border for border in borders if border < last} | {last})
        self.is_prefilled = False
        """Whether all of the prompt is processed, but for its last token."""
        self.proposals = MAX_PROPOSALS
        self._begun = held
        self._total = len(tokens)

    @property
    def cached_tokens(self) -> int:
        """Tokens that all caches hold."""
        return min(layer.offset for layer in self.cache)

    def trim(self) -> None:
        """Takes out of the caches what was proposed and did not come."""
        for layer in self.cache:
            layer.trim(max(layer.offset - (len(self.tokens) - 1), 0))

    def offer(self) -> None:
        """Lets the row take what it wants of its cache."""
        held = self.cached_tokens
        if held:
            for layer in self.cache:
                layer.trim(layer.offset - held)
            self.row.keep(self.tokens[:held], RowCache(self.cache, 0, held))

    def progress(self, done: int) -> PromptProgress:
        """That so many of the tokens are done."""
        return PromptProgress(self.uid, (done - self._begun, self._total - self._begun), True, done == self._total)

    def plan(self, ends: set[int], structural: set[int]) -> None:
        """Prepares the sampling, at the prompt's end."""
        self._choose = StepSampler([self.row], [self.tokens[:-1]], ends, structural)

    def take(self, logits: mx.array, proposals: list[int]) -> tuple[bool, int]:
        """Samples logits [1, K + 1, V] up to the first of K proposals that does not come.

        Returns:
            Whether the row goes on, and how many proposals came.
        """
        accepted = 0
        while True:
            token, handle = self._next(logits[:, accepted])
            came = proposals[accepted : accepted + 1] == [token]
            self.tokens.append(token)
            goes_on = self.row.append_token(token, handle, drafted=came)
            accepted += came
            if not (came and goes_on):
                return goes_on, accepted

    def _next(self, raw: mx.array) -> tuple[int, LogprobHandle | None]:
        """The token that logits [1, V] lead to, and its handle."""
        sampled, (handle,) = self._choose(raw, mx.array(self.tokens[-1:]))
        token: Any = sampled.item()
        return token, handle
