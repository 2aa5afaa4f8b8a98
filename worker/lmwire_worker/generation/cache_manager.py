"""Decide what of a request's prompt and answer is cached, and what a later request reuses."""

import copy
import math
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache
from msgspec.structs import replace

from lmwire_protocol import Generate, RequestError
from lmwire_protocol.events import CacheStats

from ..models.device_memory import format_bytes
from ..models.logit_comparison import differ_by_rounding
from ..multimodal.media_input import FeatureCache, MediaInput
from .admission import MemoryBudget
from .caches import CacheSchema, Checkpoint, evaluate
from .prefix_cache import CacheHit, PrefixCache
from .request_table import Sequence

if TYPE_CHECKING:
    from .prefix_cache.disk_tier import ComputeSeconds, DiskRead, DiskTier

MAX_LAST_CHECKPOINTS: Final = 3
"""Maximum number of checkpoints at the ends of a prompt's last messages, besides the one after its first message. Each
costs memory."""

MEDIA_FRACTION: Final = 0.25
"""Maximum share of the cache's budget for the features of images and sounds."""


class CacheManager:
    """The prefix cache of one model, and the cache of its media features.

    Args:
        network: The model.
        budget: The memory of the model and its requests.
        eos_token_ids: The model's end-of-turn tokens.
        disk: The caches on disk; None if nothing is written to disk.
        features: The cached media input; None for a model without media.
        media_in_use: Returns the media input of the active requests.
        compute_s: Predicts how long the model computes tokens, in seconds; see `DiskTier.start_reading`.
    """

    def __init__(
        self,
        network: nn.Module,
        budget: MemoryBudget,
        eos_token_ids: set[int],
        disk: "DiskTier | None" = None,
        features: FeatureCache | None = None,
        media_in_use: Callable[[], Collection[MediaInput]] = lambda: (),
        compute_s: "ComputeSeconds" = lambda *_: math.inf,
    ) -> None:
        self._network = network
        self._eos_token_ids = eos_token_ids
        self.schema = CacheSchema(make_prompt_cache(network))
        self._budget = budget
        self._features = features
        max_bytes = budget.max_cache_bytes
        if features:
            features.limit_budget(int(MEDIA_FRACTION * max_bytes))
            features.track_use(media_in_use)
            max_bytes -= features.budget
        self.prefix_cache = PrefixCache(self.schema, max_bytes, disk=disk, compute_s=compute_s)

    # Before the prefill of a request.

    def check_pin(self, sequence: Sequence) -> None:
        """Check that a request's prompt can be pinned, if the request asks for that.

        Raises:
            RequestError: unsupported, out_of_memory.
        """
        if sequence.request.cache != "pin":
            return
        if not self.schema.is_supported:
            problem = "nothing can be kept of this model's prompts: it has caches of its own kind"
            raise RequestError("unsupported", problem, field="cache")
        before_last = len(sequence.prompt) - 1
        tokens = sequence.cache_key(sequence.prompt)[: before_last + sequence.is_prefill_only]
        checkpoints = {*self._message_ends(tokens), before_last, len(tokens)}
        need = self._budget.row_cost.cached_bytes(*self.prefix_cache.pin_cost(tokens, checkpoints))
        pinned, budget = self.prefix_cache.pinned_bytes, self.prefix_cache.budget
        if need + pinned > budget:
            there_is = f"of the {format_bytes(budget)} for what is cached, {format_bytes(pinned)} are pinned already"
            problem = f"cache: to pin {len(sequence.prompt)} tokens takes {format_bytes(need)}, and {there_is}"
            raise RequestError("out_of_memory", problem, field="cache")

    def start_reading(self, sequence: Sequence) -> "Future[DiskRead | None] | None":
        """Start to read the part of a prompt that only the disk holds; return None if that is not quicker."""
        return (
            self.prefix_cache.start_reading(sequence.cache_key(sequence.prompt)) if self._may_cache(sequence) else None
        )

    def find(self, sequence: Sequence, read: "DiskRead | None") -> CacheHit | None:
        """Return the longest cached prefix of a prompt, and pin it if the request asks for that.

        Args:
            sequence: The first choice of the request.
            read: The result of `start_reading`.
        """
        if not self._may_cache(sequence):
            return None
        prompt = sequence.cache_key(sequence.prompt)
        hit = self.prefix_cache.fetch(prompt, read)
        if hit is not None and not hit.needs_verification and sequence.request.cache == "pin":
            self.prefix_cache.pin(prompt[: hit.length])
        return hit

    def explain_miss(self, sequence: Sequence, cached_tokens: int) -> tuple[int, bool] | None:
        """Return where a prompt ceases to be known: see `PrefixCache.common_tokens`.

        Args:
            sequence: The first choice of the request.
            cached_tokens: Tokens of the prompt that come from the cache.

        Returns:
            None if all but the last token are cached, or if the request does not use the cache.
        """
        if not self.may_share(sequence) or cached_tokens >= len(sequence.prompt) - 1:
            return None
        return self.prefix_cache.common_tokens(sequence.cache_key(sequence.prompt))

    def may_share(self, sequence: Sequence) -> bool:
        """Return whether what is computed of a prompt may come from another request, or go to one."""
        needs_logits = isinstance(sequence.request, Generate) and sequence.request.prompt_logprobs
        return self._may_cache(sequence) and not needs_logits

    def known_tokens(self, sequence: Sequence) -> int:
        """Return the number of a prompt's tokens that are cached."""
        return self.prefix_cache.known_tokens(sequence.cache_key(sequence.prompt))

    def checkpoints(self, sequence: Sequence) -> list[int]:
        """Return the token counts at which a prefill pauses to store a checkpoint. Each costs a chunk."""
        if sequence.unverified_hit is not None:
            return [sequence.unverified_hit.length]
        return self._message_ends(sequence.prompt[:-1]) if self._may_cache(sequence) else []

    @property
    def needs_snapshots(self) -> bool:
        """True if a prompt can only continue from a checkpoint, and not from any token of another prompt."""
        return self.schema.needs_snapshots

    # During and after it.

    def stores_prompt(self, sequence: Sequence) -> bool:
        """Return whether to store a sequence's prompt at its checkpoints, and not only with the answer.

        Each store copies a part of every layer, and a later hit joins all parts. So one store for both is quicker. A
        request that could use the prompt before the answer's end gets it from the batch; see `SharedPrefill`.
        """
        pinned, checked = sequence.request.cache == "pin", sequence.unverified_hit is not None
        return self.needs_snapshots or pinned or checked

    def store(self, sequence: Sequence, checkpoint: Checkpoint | None) -> None:
        """Store what was computed of a sequence, if the request allows that.

        Args:
            sequence: The sequence.
            checkpoint: The cache of its tokens so far; None if the cache is incomplete.
        """
        if checkpoint is None or not self._may_cache(sequence):
            return
        length = len(checkpoint.tokens)
        if hit := sequence.take_unverified_hit(length):
            self._verify(hit, sequence, checkpoint)
        pin = sequence.request.cache == "pin" and length <= len(sequence.prompt)
        self.prefix_cache.store(sequence.cache_key(list(checkpoint.tokens)), checkpoint.cache, pin=pin)

    def cut(self, sequence: Sequence, checkpoint: Checkpoint | None) -> tuple[list[Any] | None, int]:
        """Return a cache of the first tokens of a sequence that was taken back, and their number.

        These are all but the last one, where a cache can be sliced; else as many as the prefix cache holds.

        Args:
            sequence: The sequence, without the tokens that it has lost.
            checkpoint: The cache of all tokens that were computed of it; None if that is incomplete.
        """
        tokens = sequence.tokens
        length = len(tokens) - 1
        can_slice = self.schema.is_supported and not self.needs_snapshots
        if can_slice and checkpoint and 0 < length <= checkpoint.cache.length:
            cache = checkpoint.cache.copy(self.schema, length)
            evaluate(cache)  # otherwise it keeps the whole group in memory
            return cache, length
        hit = self.prefix_cache.fetch(sequence.cache_key(tokens), None) if self._may_cache(sequence) else None
        return (None, 0) if hit is None or hit.needs_verification else (copy.deepcopy(hit.cache), hit.length)

    # Memory.

    @property
    def bytes(self) -> int:
        """Size of all cached entries and of the media input in use."""
        return sum(part.bytes for part in self._parts)

    def evict(self, bytes: int) -> int:
        """Evict at least `bytes`, if possible, and return the number of bytes freed.

        The least recently used entry goes first. Pinned entries and media input in use stay.
        """
        freed = 0
        while freed < bytes and (stale := [part for part in self._parts if part.stale_since is not None]):
            freed += min(stale, key=lambda part: part.stale_since or 0).evict(1)
        return freed

    def clear(self) -> int:
        """Delete all entries, and return the number of bytes freed."""
        return sum(part.clear() for part in self._parts)

    def close(self) -> None:
        """Finish the writes to disk, and free all memory. Afterwards only `stats` may be called."""
        self.prefix_cache.close()
        self.prefix_cache = PrefixCache(self.schema, self.prefix_cache.budget)
        if self._features is not None:
            self._features.clear()
        del self._network

    def stats(self) -> CacheStats | None:
        """Return the cache's statistics; None if this model's caches cannot be stored. Safe in any thread."""
        stats = self.prefix_cache.stats()
        if self._features is None:
            return stats if self.schema.is_supported else None
        entries, size = self._features.count()
        return replace(
            stats,
            bytes=stats.bytes + size,
            budget_bytes=stats.budget_bytes + self._features.budget,
            entries=stats.entries + entries,
            evictions=stats.evictions + self._features.evictions,
        )

    @property
    def _parts(self) -> list[PrefixCache | FeatureCache]:
        return [self.prefix_cache, self._features] if self._features else [self.prefix_cache]

    def _may_cache(self, sequence: Sequence) -> bool:
        return sequence.is_trusted and sequence.request.cache != "off" and self.schema.is_supported

    def _message_ends(self, prompt: list[int]) -> list[int]:
        """Return the ends of messages at which snapshots are stored; none for a model that needs no snapshots."""
        if not self.schema.needs_snapshots:
            return []
        ends = [index + 1 for index, token in enumerate(prompt) if token in self._eos_token_ids]
        return [*ends[:1], *ends[1:][-MAX_LAST_CHECKPOINTS:]]

    def _verify(self, hit: CacheHit, sequence: Sequence, checkpoint: Checkpoint) -> None:
        """Compare a cache hit with the same tokens' new cache, and drop the entry if they differ."""
        computed = checkpoint.cache.copy(self.schema)
        if not logits_match(self._network, sequence.prompt[hit.length], hit.cache, computed):
            self.prefix_cache.quarantine(sequence.cache_key(sequence.prompt)[: hit.length])


# Comparison of a cached prefix with the same tokens computed again.


def logits_match(network: nn.Module, token: int, kept: list[Any], computed: list[Any]) -> bool:
    """Return whether a token's logits after two caches of the same tokens are equal, except for rounding.

    Args:
        network: The model.
        token: The token after those in the caches.
        kept: The cached prefix. It is not changed.
        computed: The same tokens, computed again. It is not changed.
    """
    warm, cold = (_logits(network, token, copy.deepcopy(cache)) for cache in (kept, computed))
    return differ_by_rounding(warm, cold)


def _logits(network: nn.Module, token: int, cache: list[Any]) -> mx.array:
    return network(mx.array([[token]]), cache=cache)[0, -1]
