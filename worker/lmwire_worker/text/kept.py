"""What a lane keeps of its requests for those that come after, as each of them asks."""

from typing import Any, Final

from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import RequestError
from lmwire_protocol.events import CacheStats

from .batching import RowCache
from .prefix_cache import Disk, Layout, PrefixCache, Start, same_logits
from .stream import Stream

LAST_BORDERS: Final = 3
"""Snapshots at the ends of a prompt's last messages, besides one at the end of its first. Each costs memory."""


class Kept:
    """The prefix cache of one model.

    Args:
        network: The model.
        budget_bytes: What it may take.
        ends: The model's end-of-turn tokens.
        disk: What is kept beyond the process; None for nothing.
    """

    def __init__(self, network: nn.Module, budget_bytes: int, ends: set[int], disk: Disk | None = None) -> None:
        self._network = network
        self._ends = ends
        self._layout = Layout(make_prompt_cache(network))
        self._cache = PrefixCache(self._layout, budget_bytes, disk=disk)

    def check(self, mode: str) -> None:
        """Raises unsupported when a request cannot be served as it asks."""
        if mode == "pin" and not self._layout.known:
            problem = "nothing can be kept of this model's prompts: it has caches of its own kind"
            raise RequestError("unsupported", problem, field="cache")

    def start(self, streams: list[Stream]) -> list[Any] | None:
        """The model's caches with what is known of a request's prompt; `begun` of its first stream is how much."""
        first, mode = streams[0], streams[0].request.cache
        if mode == "off" or not self._layout.known:
            return None
        for stream in streams:
            stream.keeper = self._keep
        prompt = first.named(first.prompt)
        start = self._cache.fetch(prompt)
        if start is None:
            return None
        if start.check:
            first.check = start
            return None
        if mode == "pin":
            self._cache.pin(prompt[: start.length])
        first.begun = first.prefilled = start.length
        return start.cache

    def borders(self, stream: Stream) -> list[int]:
        """Where in its prompt a stream is to offer what was computed, besides its end."""
        if stream.check is not None:
            return [stream.check.length]
        if stream.keeper is None or not self._layout.whole:
            return []
        borders = [index + 1 for index, token in enumerate(stream.prompt) if token in self._ends]
        return [*borders[:1], *borders[1:][-LAST_BORDERS:]]

    @property
    def whole(self) -> bool:
        """Whether a prompt that begins like another can only go on from a border."""
        return self._layout.whole

    def forget(self, stream: Stream) -> None:
        """Trusts nothing more that is computed for a stream."""
        stream.keeper = stream.check = None

    @property
    def bytes(self) -> int:
        """What it takes."""
        return self._cache.bytes

    def evict(self, bytes: int) -> int:
        """Drops at least so many bytes, as far as they are not pinned, and returns how many."""
        return self._cache.evict(bytes)

    def clear(self) -> int:
        """Drops everything, and returns its bytes."""
        return self._cache.clear()

    def close(self) -> None:
        """Ends what is written to disk. Nothing is kept any more."""
        self._cache.close()

    def stats(self) -> CacheStats | None:
        """None when nothing ever is kept. May be called from any thread."""
        return self._cache.stats() if self._layout.known else None

    def _keep(self, stream: Stream, tokens: list[int], cache: RowCache) -> None:
        if stream.check is not None and len(tokens) == stream.check.length:
            self._compare(stream.check, stream, cache)
            stream.check = None
        pin = stream.request.cache == "pin" and len(tokens) <= len(stream.prompt)
        self._cache.store(stream.named(list(tokens)), cache, pin=pin)

    def _compare(self, known: Start, stream: Stream, cache: RowCache) -> None:
        """Holds what was known of a prompt against what was just computed of it."""
        computed = cache.copy(self._layout)
        if not same_logits(self._network, stream.prompt[known.length], known.cache, computed):
            self._cache.quarantine(stream.named(stream.prompt)[: known.length])
