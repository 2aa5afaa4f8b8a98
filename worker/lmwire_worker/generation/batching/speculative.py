"""Speculative decoding: a draft model proposes tokens, and the target model verifies all of them in one pass.

Each position is sampled as without a draft, and the first token that differs from its proposal ends the step. So the
draft affects how many tokens a step gives, and never which. The idea: https://arxiv.org/abs/2211.17192
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection
from typing import Any, Final, Protocol

import mlx.core as mx
from mlx_lm.models.cache import KVCache, make_prompt_cache

from ..sampling.logprobs import LogprobHandle
from .continuous_batch import PromptProgress
from .row_cache import Checkpoint, RowCache
from .rows import Row, StepSampler
from .target_draft_pair import TargetDraftPair

MAX_PROPOSALS: Final = 4
"""Maximum number of tokens proposed in one step."""


class SpeculativeRow(Row, Protocol):
    """A row that accepts drafted tokens."""

    def append_token(self, token: int, logprob: LogprobHandle | None, *, drafted: bool = False) -> bool:
        """See `Row.append_token`. `drafted`: the draft model proposed the token."""
        ...


class SpeculativeBatch:
    """A batch of one row at a time, with the methods of `ContinuousBatch`.

    Args:
        pair: The target model and its draft model. All of their caches are plain KV caches.
        eos_token_ids: The tokens that end a turn or a gap.
        xtc_special_tokens: Tokens that XTC never excludes.
    """

    def __init__(self, pair: TargetDraftPair, eos_token_ids: set[int], xtc_special_tokens: set[int]) -> None:
        self._pair = pair
        self._eos_token_ids = eos_token_ids
        self._xtc_special_tokens = xtc_special_tokens
        self._rows: deque[_SpeculativeState] = deque()
        """The first row is in work; the others are queued."""
        self._last_uid = 0

    def add(
        self,
        row: SpeculativeRow,
        prompt: list[int],
        cache: list[Any] | None = None,
        prefix_tokens: int = 0,
        checkpoints: Collection[int] = (),
    ) -> int:
        """See `ContinuousBatch.add`."""
        cache = cache or make_prompt_cache(self._pair)
        new = _SpeculativeState(self._new_uid(), row, prompt, cache, prefix_tokens, checkpoints)
        self._rows.append(new)
        return new.uid

    def add_prefilled(self, row: SpeculativeRow, tokens: list[int], cache: list[Any]) -> int:
        """See `ContinuousBatch.add_prefilled`."""
        new = _SpeculativeState(self._new_uid(), row, tokens, cache, len(tokens) - 1)
        self._rows.insert(1, new)  # the first row is in work
        return new.uid

    def copy_cache(self, uid: int) -> list[Any]:
        """See `ContinuousBatch.copy_cache`. Callers copy what they change, so this returns the cache itself."""
        return self._find(uid).cache

    def checkpoint(self, uid: int) -> Checkpoint | None:
        """See `ContinuousBatch.checkpoint`."""
        return self._find(uid).checkpoint()

    def drop(self, uids: Collection[int]) -> None:
        """See `ContinuousBatch.drop`."""
        for uid in uids:
            self._rows.remove(self._find(uid))

    def admit_prompts(self, max_tokens: int) -> int:
        """See `ContinuousBatch.admit_prompts`. Prompts are prefilled one by one."""
        return int(self.has_prompts)

    def prefill(self, size: int) -> list[PromptProgress]:
        """See `ContinuousBatch.prefill`. The first step of the answer computes the prompt's last token."""
        row = self._rows[0]
        progress: list[PromptProgress] = []
        start, last = row.cached_tokens, len(row.tokens) - 1
        if start < last:
            stop = min(start + size, row.chunk_ends[bisect_right(row.chunk_ends, start)])
            self._pair(mx.array([row.tokens[start:stop]]), row.cache)
            mx.eval([layer.state for layer in row.cache])
            progress.append(row.progress(stop))
        if row.cached_tokens == last:
            row.is_prefilled = True
            row.prepare_sampler(self._eos_token_ids, self._xtc_special_tokens)
            progress.append(row.progress(last + 1))
        return progress

    def start_decoding(self) -> list[PromptProgress]:
        """See `ContinuousBatch.start_decoding`. `prefill` has already done this."""
        return []

    def first_tokens(self) -> list[Any]:
        """See `ContinuousBatch.first_tokens`. Here a step delivers its own tokens, so there are none."""
        return []

    def decode(self) -> list[Any]:
        """See `ContinuousBatch.decode`. A step gives the row one token or more."""
        if not self.running:
            return []
        row = self._rows[0]
        self._decode(row)
        return [row.row]

    @property
    def running(self) -> int:
        """Number of rows that are decoded: 0 or 1."""
        return int(bool(self._rows) and self._rows[0].is_prefilled)

    @property
    def longest_remaining(self) -> int:
        """See `ContinuousBatch.longest_remaining`."""
        return len(self._rows[0].tokens) - 1 - self._rows[0].cached_tokens

    @property
    def has_prompts(self) -> bool:
        """True if the prompt of the row in work is incomplete."""
        return bool(self._rows) and not self._rows[0].is_prefilled

    def close(self) -> None:
        """Remove all rows."""
        self._rows.clear()

    def _new_uid(self) -> int:
        self._last_uid += 1
        return self._last_uid

    def _find(self, uid: int) -> "_SpeculativeState":
        return next(row for row in self._rows if row.uid == uid)

    def _decode(self, row: "_SpeculativeState") -> None:
        target_cache, draft_cache = self._pair.split(row.cache)
        proposals = self._propose(row, draft_cache)
        logits = self._pair.model(mx.array([[row.tokens[-1], *proposals]]), cache=target_cache)
        mx.eval(logits)
        accepted = row.accept(logits, proposals)
        row.trim()
        row.max_proposals = min(accepted + 1, MAX_PROPOSALS)

    def _propose(self, row: "_SpeculativeState", cache: list[Any]) -> list[int]:
        """Return the draft's most probable next tokens, no more than the answer may still have."""
        proposals: list[int] = []
        unread = row.tokens[cache[0].offset :]
        for _ in range(min(row.max_proposals, row.row.remaining_tokens - 1)):
            logits = self._pair.draft_logits(mx.array([unread]), cache)
            best: Any = mx.argmax(logits[0, -1]).item()
            unread = [best]
            proposals += unread
        return proposals


class _SpeculativeState:
    """A row, with its caches and its sampler.

    Args:
        uid: The row's name.
        row: Receives the tokens.
        tokens: The prompt, and the answer so far.
        cache: The caches of the target model and of its draft model. They hold `prefix_tokens` of the tokens.
        prefix_tokens: Fewer than all tokens.
        checkpoints: Token counts at which a chunk ends, besides the end of the prompt.
    """

    def __init__(
        self,
        uid: int,
        row: SpeculativeRow,
        tokens: list[int],
        cache: list[KVCache],
        prefix_tokens: int,
        checkpoints: Collection[int] = (),
    ) -> None:
        self.uid = uid
        self.row = row
        self.tokens = list(tokens)
        self.cache = cache
        last = len(tokens) - 1
        self.chunk_ends = sorted({end for end in checkpoints if end < last} | {last})
        self.is_prefilled = False
        """True if all of the prompt but its last token is computed."""
        self.max_proposals = MAX_PROPOSALS
        self._prefix_tokens = prefix_tokens
        self._prompt_tokens = len(tokens)

    @property
    def cached_tokens(self) -> int:
        """Number of tokens that all caches hold."""
        return min(layer.offset for layer in self.cache)

    def trim(self) -> None:
        """Remove rejected proposals from the caches."""
        for layer in self.cache:
            layer.trim(max(layer.offset - (len(self.tokens) - 1), 0))

    def checkpoint(self) -> Checkpoint | None:
        """Return the row's cache; None if it is empty."""
        cached = self.cached_tokens
        if not cached:
            return None
        for layer in self.cache:
            layer.trim(layer.offset - cached)
        return Checkpoint(self.tokens[:cached], RowCache(self.cache, 0, cached))

    def progress(self, done: int) -> PromptProgress:
        """Return the progress of a prefill that has computed `done` tokens."""
        counts = (done - self._prefix_tokens, self._prompt_tokens - self._prefix_tokens)
        return PromptProgress(self.uid, counts, done in self.chunk_ends, done == self._prompt_tokens)

    def prepare_sampler(self, eos_token_ids: set[int], xtc_special_tokens: set[int]) -> None:
        """Prepare to sample, at the end of the prompt.

        Args:
            eos_token_ids: The tokens that end a turn or a gap.
            xtc_special_tokens: Tokens that XTC never excludes.
        """
        self._sample = StepSampler([self.row], [self.tokens[:-1]], eos_token_ids, xtc_special_tokens)

    def accept(self, logits: mx.array, proposals: list[int]) -> int:
        """Sample tokens up to the first that differs from its proposal, and return the number of accepted proposals.

        Args:
            logits: The target model's logits [1, K + 1, V].
            proposals: The draft's K tokens.
        """
        accepted = 0
        while True:
            token, handle = self._next(logits[:, accepted])
            is_accepted = proposals[accepted : accepted + 1] == [token]
            self.tokens.append(token)
            continues = self.row.append_token(token, handle, drafted=is_accepted)
            accepted += is_accepted
            if not (is_accepted and continues):
                return accepted

    def _next(self, raw: mx.array) -> tuple[int, LogprobHandle | None]:
        """Sample from logits [1, V], and return the token with its handle."""
        sampled, (handle,) = self._sample(raw, mx.array(self.tokens[-1:]))
        token: Any = sampled.item()
        return token, handle
