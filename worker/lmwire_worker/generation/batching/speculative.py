"""Speculative decoding: a draft model proposes tokens, and the target model verifies all of them in one pass.

Each position is sampled as without a draft, and the first token that differs from its proposal ends the step. So the
draft affects how many tokens a step gives, and never which. The idea: https://arxiv.org/abs/2211.17192
"""

from collections import deque
from collections.abc import Collection
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import KVCache, make_prompt_cache

from ..caches import Checkpoint, RowCache, evaluate
from ..sampling.logprobs import LogprobHandle
from .rows import Decoding, PromptProgress, Row, RowState, StepSampler

MAX_PROPOSALS: Final = 4
"""Maximum number of tokens proposed in one step."""


class TargetDraftPair(nn.Module):
    """A network with the caches of both models and the logits of the target model.

    Args:
        model: The target model.
        draft: The draft model, which proposes tokens.
        vocab_size: Number of tokens that both models know. Beyond it, at least one of them has padding.
    """

    def __init__(self, model: nn.Module, draft: nn.Module, vocab_size: int) -> None:
        super().__init__()
        self.model = model
        self.draft = draft
        self._vocab_size = vocab_size
        self._own = len(make_prompt_cache(model))

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Compute tokens [B, T] with both models, and return the target model's logits [B, T, V]."""
        own, drafts = self.split(cache)
        logits = self.model(tokens, cache=own)
        self.draft_logits(tokens, drafts)
        return logits

    def draft_logits(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Return the draft's logits [B, T, vocab_size]. Tokens that only the target model has become another token."""
        return self.draft(mx.minimum(tokens, self._vocab_size - 1), cache=cache)[..., : self._vocab_size]

    def make_cache(self) -> list[Any]:
        """Return empty caches of both models."""
        return [*make_prompt_cache(self.model), *make_prompt_cache(self.draft)]

    def split(self, cache: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the caches of the target model, and those of the draft model."""
        return cache[: self._own], cache[self._own :]

    @property
    def layers(self) -> Any:
        """The layers of the target model."""
        return getattr(self.model, "layers", ())


class SpeculativeBatch:
    """A batch of one row at a time, with the methods of `Batch`.

    Args:
        pair: The target model and its draft model. All of their caches are plain KV caches.
        decoding: How it decodes.
    """

    def __init__(self, pair: TargetDraftPair, decoding: Decoding) -> None:
        self._pair = pair
        self._decoding = decoding
        self._rows: deque[_SpeculativeState] = deque()
        """The first row is in work; the others are queued."""

    def add(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any] | None = None,
        prefix_tokens: int = 0,
        checkpoints: Collection[int] = (),
        order: int = 0,
    ) -> None:
        """See `Batch.add`."""
        cache = cache or make_prompt_cache(self._pair)
        new = _SpeculativeState(row, prompt, cache, prefix_tokens, checkpoints, order)
        self._rows.insert(sum(place == 0 or other.order <= order for place, other in enumerate(self._rows)), new)

    def add_prefilled(self, row: Row, tokens: list[int], cache: list[Any]) -> None:
        """See `Batch.add_prefilled`."""
        new = _SpeculativeState(row, tokens, cache, len(tokens) - 1)
        first = self._rows[0] if self._rows else None
        is_started = first is not None and (first.is_running or first.progress(len(first.tokens)).done > 0)
        self._rows.insert(int(is_started), new)

    def prefills_before(self, row: Row, length: int) -> bool:
        """See `Batch.prefills_before`. Rows with a lower order come first."""
        return True

    def pause_at(self, row: Row, tokens: int) -> None:
        """See `Batch.pause_at`."""
        next(state for state in self._rows if state.row is row).pause_at(tokens)

    def copy_cache(self, row: Row) -> list[Any]:
        """See `Batch.copy_cache`. Callers copy what they change, so this returns the cache itself."""
        return next(state for state in self._rows if state.row is row).cache

    def checkpoint(self, row: Row) -> Checkpoint | None:
        """See `Batch.checkpoint`."""
        return next((state.checkpoint() for state in self._rows if state.row is row), None)

    def drop(self, rows: Collection[Row]) -> None:
        """See `Batch.drop`."""
        self._rows = deque(state for state in self._rows if state.row not in rows)

    def admit_prompts(self, max_tokens: int) -> int:
        """See `Batch.admit_prompts`. Prompts are prefilled one by one."""
        return int(self.has_prompts)

    def prefill(self, size: int) -> list[PromptProgress]:
        """See `Batch.prefill`. The first step of the answer computes the prompt's last token."""
        state = self._rows[0]
        progress: list[PromptProgress] = []
        if state.remaining > 1:
            chunk = state.next_chunk(size)
            self._pair(mx.array([chunk]), state.cache)
            evaluate(state.cache)
            state.tokens += chunk
            progress.append(state.progress(len(state.tokens)))
        if state.remaining == 1:
            state.start_decoding(self._decoding)
            progress.append(state.progress(len(state.prompt)))
        return progress

    def start_decoding(self) -> list[PromptProgress]:
        """See `Batch.start_decoding`. `prefill` has already done this."""
        return []

    def first_tokens(self) -> list[Any]:
        """See `Batch.first_tokens`. Here a step delivers its own tokens, so there are none."""
        return []

    def decode(self) -> list[Any]:
        """See `Batch.decode`. A step gives the row one token or more."""
        if not self.running:
            return []
        state = self._rows[0]
        self._decode(state)
        return [state.row]

    @property
    def running(self) -> int:
        """Number of rows that are decoded: 0 or 1."""
        return int(bool(self._rows) and self._rows[0].is_running)

    @property
    def longest_remaining(self) -> int:
        """See `Batch.longest_remaining`."""
        return self._rows[0].remaining - 1

    @property
    def has_prompts(self) -> bool:
        """True if the prompt of the row in work is incomplete."""
        return bool(self._rows) and not self._rows[0].is_running

    def close(self) -> None:
        """Remove all rows."""
        self._rows.clear()

    def _decode(self, state: "_SpeculativeState") -> None:
        target_cache, draft_cache = self._pair.split(state.cache)
        proposals = self._propose(state, draft_cache)
        logits = self._pair.model(mx.array([[state.newest, *proposals]]), cache=target_cache)
        mx.eval(logits)
        accepted = state.accept(logits, proposals)
        state.trim()
        state.max_proposals = min(accepted + 1, MAX_PROPOSALS)

    def _propose(self, state: "_SpeculativeState", cache: list[Any]) -> list[int]:
        """Return the draft's most probable next tokens, no more than the answer may still have."""
        proposals: list[int] = []
        unread = [*state.tokens[cache[0].offset :], state.newest]
        for _ in range(min(state.max_proposals, state.row.remaining_tokens - 1)):
            logits = self._pair.draft_logits(mx.array([unread]), cache)
            best: Any = mx.argmax(logits[0, -1]).item()
            unread = [best]
            proposals += unread
        return proposals


class _SpeculativeState(RowState):
    """A row, with the caches of both models and with its sampler. The target model's cache holds its tokens."""

    cache: list[KVCache]
    is_running = False
    """True if all of the prompt but its last token is computed."""
    newest = 0
    """The token that the next step reads, while the row runs."""
    max_proposals = MAX_PROPOSALS

    def start_decoding(self, decoding: Decoding) -> None:
        """Prepare to sample, at the end of the prompt."""
        self.is_running = True
        self.newest = self.prompt[-1]
        self._sample = StepSampler(decoding, [self])

    def trim(self) -> None:
        """Remove rejected proposals from the caches."""
        for layer in self.cache:
            layer.trim(max(layer.offset - len(self.tokens), 0))

    def checkpoint(self) -> Checkpoint | None:
        """Return what the caches of both models hold; None if one is empty."""
        cached = min(layer.offset for layer in self.cache)
        if not cached:
            return None
        for layer in self.cache:
            layer.trim(layer.offset - cached)
        return Checkpoint(self.tokens[:cached], RowCache(self.cache, 0, cached))

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
            self.tokens.append(self.newest)
            self.newest = token
            continues = self.row.append_token(token, handle, drafted=is_accepted)
            accepted += is_accepted
            if not (is_accepted and continues):
                return accepted

    def _next(self, raw: mx.array) -> tuple[int, LogprobHandle | None]:
        """Sample from logits [1, V], and return the token with its handle."""
        sampled, (handle,) = self._sample(raw, mx.array([self.newest]))
        token: Any = sampled.item()
        return token, handle
