"""What a lane keeps of its requests for those that come after, as each of them asks."""

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from mlx import nn
from mlx_lm.models.cache import make_prompt_cache
from msgspec.structs import replace

from lmwire_protocol import RequestError
from lmwire_protocol.events import CacheStats

from ..models.memory_budget import format_bytes
from .admission import MemoryBudget
from .batching import RowCache
from .prefix_cache import CacheHit, CacheSchema, DiskRead, DiskTier, PrefixCache, logits_match
from .sequence import Sequence

if TYPE_CHECKING:
    from ..multimodal.feature_cache import Shelf

MAX_LAST_CHECKPOINTS: Final = 3
"""Snapshots at the ends of a prompt's last messages, besides one at the end of its first. Each costs memory."""

MIN_SHARED_TOKENS: Final = 64
"""Tokens of a prompt: less is as soon processed again."""

MEDIA_FRACTION: Final = 0.25
"""Of what is kept, for what was made of images and sounds, at most."""


class CacheManager:
    """The prefix cache of one model, and what was made of images and sounds for it.

    Args:
        network: The model.
        room: The memory that there is.
        ends: The model's end-of-turn tokens.
        disk: What is kept beyond the process; None for nothing.
        shelf: What was made of images and sounds; None for a model that takes none.
    """

    def __init__(
        self,
        network: nn.Module,
        room: MemoryBudget,
        ends: set[int],
        disk: DiskTier | None = None,
        shelf: "Shelf | None" = None,
    ) -> None:
        self._network = network
        self._ends = ends
        self._schema = CacheSchema(make_prompt_cache(network))
        self._room = room
        self._shelf = shelf
        budget = room.max_cache_bytes
        if shelf:
            shelf.budget = min(shelf.budget, int(MEDIA_FRACTION * budget))
            budget -= shelf.budget
        self._cache = PrefixCache(self._schema, budget, disk=disk)

    def check_pin(self, stream: Sequence) -> None:
        """Raises unsupported or out_of_memory when a request's prompt cannot be kept as it asks."""
        if stream.request.cache != "pin":
            return
        if not self._schema.is_supported:
            problem = "nothing can be kept of this model's prompts: it has caches of its own kind"
            raise RequestError("unsupported", problem, field="cache")
        before_last = len(stream.prompt) - 1
        held = stream.cache_key(stream.prompt)[: before_last + stream.is_prefill_only]
        places = {*self._message_ends(held), before_last, len(held)}
        need = self._room.row_cost.cached_bytes(*self._cache.pin_cost(held, places))
        pinned, budget = self._cache.pinned_bytes, self._cache.budget
        if need + pinned > budget:
            there_is = f"of the {format_bytes(budget)} for what is cached, {format_bytes(pinned)} are pinned already"
            problem = f"cache: to pin {len(stream.prompt)} tokens takes {format_bytes(need)}, and {there_is}"
            raise RequestError("out_of_memory", problem, field="cache")

    def start_reading(self, stream: Sequence) -> Future[DiskRead | None] | None:
        """Begins to read what only the disk knows of a request's prompt; None when there is nothing."""
        return self._cache.start_reading(stream.cache_key(stream.prompt)) if self._may_use(stream) else None

    def start(self, streams: list[Sequence], read: DiskRead | None) -> list[Any] | None:
        """The model's caches with what is known of a request's prompt; `begun` of its first stream is how much.

        Args:
            streams: The request's choices.
            read: What `read` found.
        """
        first = streams[0]
        if not self._may_use(first):
            return None
        for stream in streams:
            stream.keeper = self._keep
        prompt = first.cache_key(first.prompt)
        start = self._cache.fetch(prompt, read)
        if start is None:
            return None
        if start.needs_verification:
            first.check = start
            return None
        if first.request.cache == "pin":
            self._cache.pin(prompt[: start.length])
        first.prefix_tokens = first.computed_tokens = start.length
        return start.cache

    def should_wait_for(self, running: Sequence, other: Sequence) -> bool:
        """Whether a stream's prompt is in work, is to be kept and is so much of another's that this had better wait."""
        before_last = len(running.prompt) - 1
        return (
            running.keeper is not None
            and not running.generated
            and running.computed_tokens < before_last >= MIN_SHARED_TOKENS
            and self._may_use(other)
            and running.cache_key(running.prompt)[:before_last] == other.cache_key(other.prompt)[:before_last]
        )

    def checkpoints(self, stream: Sequence) -> list[int]:
        """Where in its prompt a stream is to offer what was computed, besides its end. Each costs a slice."""
        if stream.check is not None:
            return [stream.check.length]
        return self._message_ends(stream.prompt[:-1]) if stream.keeper and self.needs_snapshots else []

    @property
    def needs_snapshots(self) -> bool:
        """Whether a prompt that begins like another can only go on from a border."""
        return self._schema.needs_snapshots

    def forget(self, stream: Sequence) -> None:
        """Trusts nothing more that is computed for a stream."""
        stream.keeper = stream.check = None

    @property
    def bytes(self) -> int:
        """What it takes, with the pictures that requests hold."""
        return sum(part.bytes for part in self._parts)

    def evict(self, bytes: int) -> int:
        """Drops at least so many bytes, as far as they are not pinned or in use, and returns how many.

        Of prompts and pictures, whatever was not used for the longest time goes first.
        """
        freed = 0
        while freed < bytes and (stale := [part for part in self._parts if part.stale_since is not None]):
            freed += min(stale, key=lambda part: part.stale_since or 0).evict(1)
        return freed

    def clear(self) -> int:
        """Drops everything, and returns its bytes."""
        return sum(part.clear() for part in self._parts)

    def close(self) -> None:
        """Ends what is written to disk. Nothing is kept any more."""
        self._cache.close()

    def stats(self) -> CacheStats | None:
        """None when nothing ever is kept. May be called from any thread."""
        stats = self._cache.stats()
        if self._shelf is None:
            return stats if self._schema.is_supported else None
        pictures, taken = self._shelf.count()
        return replace(
            stats,
            bytes=stats.bytes + taken,
            budget_bytes=stats.budget_bytes + self._shelf.budget,
            entries=stats.entries + pictures,
            evictions=stats.evictions + self._shelf.evictions,
        )

    @property
    def _parts(self) -> "list[PrefixCache | Shelf]":
        return [self._cache, self._shelf] if self._shelf else [self._cache]

    def _may_use(self, stream: Sequence) -> bool:
        return stream.request.cache != "off" and self._schema.is_supported

    def _message_ends(self, prompt: list[int]) -> list[int]:
        """Where in a prompt it is worth to keep the layers that cannot be cut, if there are any."""
        if not self._schema.needs_snapshots:
            return []
        ends = [index + 1 for index, token in enumerate(prompt) if token in self._ends]
        return [*ends[:1], *ends[1:][-MAX_LAST_CHECKPOINTS:]]

    def _keep(self, stream: Sequence, tokens: list[int], cache: RowCache) -> None:
        if stream.check is not None and len(tokens) == stream.check.length:
            self._compare(stream.check, stream, cache)
            stream.check = None
        pin = stream.request.cache == "pin" and len(tokens) <= len(stream.prompt)
        self._cache.store(stream.cache_key(list(tokens)), cache, pin=pin)

    def _compare(self, known: CacheHit, stream: Sequence, cache: RowCache) -> None:
        """Holds what was known of a prompt against what was just computed of it."""
        computed = cache.copy(self._schema)
        if not logits_match(self._network, stream.prompt[known.length], known.cache, computed):
            self._cache.quarantine(stream.cache_key(stream.prompt)[: known.length])
