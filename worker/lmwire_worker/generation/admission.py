"""Whether there is memory for one more request, and for the next token of those that run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import RequestError

from ..engine.interface import InsufficientMemory, ModelInfo
from ..models.memory_budget import check_fits, format_bytes
from .batching import assign_buckets, max_padding_tokens
from .prefix_cache import flatten_caches

CACHE_STEP_TOKENS: Final = 256
"""Tokens by which mlx-lm's caches grow."""
RESERVED_ANSWER_TOKENS: Final = 256
"""Tokens of an answer for which memory is promised when it starts. What max_tokens allows is hardly ever used up."""
MIN_CONTEXT_TOKENS: Final = 1024
"""Tokens for which there must be memory for a model to be loaded."""
PROBE_TOKENS: Final = 8
CACHE_FRACTION: Final = 0.25
"""Of the budget, for what is kept of requests,"""
MAX_CACHE_BYTES: Final = 8 * 2**30
"""but so many bytes at most."""


@dataclass(frozen=True)
class RowCost:
    """What a row of a batch takes."""

    fixed_bytes: int
    """Bytes at any length: recurrent states."""
    growing: tuple[tuple[int, int | None], ...]
    """Bytes a token, and the tokens after which they grow no more; None for never."""

    @classmethod
    def measure(cls, network: nn.Module) -> "RowCost":
        """Reads it off a model's caches. Evaluates nothing, so the weights need not be there yet."""
        cache = make_prompt_cache(network)
        network(mx.zeros((1, PROBE_TOKENS), mx.int32), cache=cache)
        fixed = 0
        growing: dict[int | None, int] = {}
        for layer in flatten_caches(cache):
            keys = getattr(layer, "keys", None)
            if keys is None:
                fixed += layer.nbytes
            else:
                window = getattr(layer, "max_size", None)
                allocated = (keys if isinstance(keys, mx.array) else keys[0]).shape[2]  # a quantised one has its scales
                growing[window] = growing.get(window, 0) + layer.nbytes // allocated
        return cls(fixed, tuple((size, window) for window, size in growing.items()))

    @property
    def token_bytes(self) -> int:
        """What each further token takes, however long the row is."""
        return sum(size for size, window in self.growing if window is None)

    def cached_bytes(self, length: int, snapshots: int) -> int:
        """What the prefix cache keeps of so many tokens, and so many times of the layers that cannot be cut."""
        windows = sum(size * window for size, window in self.growing if window is not None)
        return self.token_bytes * length + snapshots * (self.fixed_bytes + windows)

    def bytes(self, length: int) -> int:
        """What a row of so many tokens takes."""
        steps = -(-length // CACHE_STEP_TOKENS) * CACHE_STEP_TOKENS
        return self.fixed_bytes + sum(
            size * (steps if window is None else min(steps, window)) for size, window in self.growing
        )


@dataclass(frozen=True)
class MemoryBudget:
    """What a loaded model's requests and caches share."""

    total_bytes: int
    """Bytes for everything."""
    resident_bytes: int
    """Bytes of it that are taken while there is no request: the weights, and whatever else this process holds."""
    weights_bytes: int
    """Bytes of the weights, which each batch reads in each step."""
    row_cost: RowCost

    @classmethod
    def measure(cls, model: ModelInfo, cost: RowCost, limit: int) -> "MemoryBudget":
        """With what MLX holds now taken. A model that was forced in may still give a short answer."""
        taken = mx.get_active_memory()
        return cls(max(limit, taken + _minimal_context(model, cost)), taken, model.weights_bytes, cost)

    @property
    def max_cache_bytes(self) -> int:
        """For what is kept of requests, at most."""
        return min(int(CACHE_FRACTION * self.total_bytes), MAX_CACHE_BYTES)

    @property
    def max_padding_tokens(self) -> float:
        """Tokens of padding that a batch of its own is worth."""
        return max_padding_tokens(self.weights_bytes, self.row_cost.token_bytes)


class EvictableCache(Protocol):
    """What is kept of earlier requests, and can be given up for others."""

    @property
    def bytes(self) -> int:
        """What it takes."""
        ...

    def evict(self, bytes: int) -> int:
        """Drops at least so much, if it may, and returns how much."""
        ...


class Admission:
    """Keeps a lane's requests within its memory.

    Args:
        room: What there is.
        cached: What is given up before a request has to wait.
        lengths: The tokens of each row held.
    """

    def __init__(self, room: MemoryBudget, cached: EvictableCache, lengths: Callable[[], list[int]]) -> None:
        self._room = room
        self._cached = cached
        self._lengths = lengths

    def check(self, prompt_tokens: int, max_tokens: int | None, rows: int, media_bytes: int = 0) -> None:
        """Sees to it that there is memory for one more request.

        Args:
            prompt_tokens: Of its prompt.
            max_tokens: What it allows each of its choices.
            rows: Its choices.
            media_bytes: What was made of its images and sounds, whether that is kept or not: it may be given up here.

        Raises:
            RequestError: out_of_memory, when there never is.
            InsufficientMemory: when there is not before others have ended.
        """
        new = [
            prompt_tokens + (RESERVED_ANSWER_TOKENS if max_tokens is None else min(max_tokens, RESERVED_ANSWER_TOKENS))
        ] * rows
        held = [length + RESERVED_ANSWER_TOKENS for length in self._lengths()]
        if self._rows_bytes(new) + media_bytes > self._room.total_bytes - self._room.resident_bytes:
            raise self._never(new, media_bytes, "")
        if not self._fit(held + new, media_bytes):
            if held:
                raise InsufficientMemory
            raise self._never(new, media_bytes, f", and {format_bytes(self._cached.bytes)} are pinned in the cache")

    def is_over_budget(self) -> bool:
        """Whether the next step needs more memory than there is, so that a request has to end."""
        return not self._fit([length + 1 for length in self._lengths()])

    def _fit(self, lengths: list[int], others: int = 0) -> bool:
        """Whether there is memory for rows so long and other bytes, if need be after something cached was given up."""
        free = self._room.total_bytes - self._room.resident_bytes - self._cached.bytes - others
        if free >= 0 and (not lengths or len(lengths) * self._room.row_cost.bytes(max(lengths)) <= free):
            return True  # all padded to the longest, which is hardly ever too much
        excess = self._rows_bytes(lengths) - free
        return excess <= 0 or self._cached.evict(excess) >= excess

    def _rows_bytes(self, lengths: list[int]) -> int:
        """What rows take: those of a batch are padded to its longest."""
        batches: dict[int, list[int]] = {}
        for row, home in assign_buckets(dict(enumerate(lengths)), self._room.max_padding_tokens).items():
            batches.setdefault(home, []).append(lengths[row])
        return sum(len(batch) * self._room.row_cost.bytes(max(batch)) for batch in batches.values())

    def _never(self, new: list[int], media_bytes: int, besides: str) -> RequestError:
        budget = self._room
        answers = f"{len(new)} answers" if len(new) > 1 else "an answer"
        answer_bytes = len(new) * budget.row_cost.bytes(new[0])
        need = f"{answers} of {new[0]} tokens, prompt included, needs {format_bytes(answer_bytes)}"
        need += f", besides {format_bytes(media_bytes)} for its images and sounds" * (media_bytes > 0)
        resident, total = format_bytes(budget.resident_bytes), format_bytes(budget.total_bytes)
        problem = f"{need}; the model takes {resident} of the {total} that there are{besides}"
        return RequestError("out_of_memory", problem)


def check_load(model: ModelInfo, cost: RowCost, limit: int, free: int | None) -> None:
    """See `memory.check_fits`; `cost` is what the model's rows take."""
    check_fits(model, _minimal_context(model, cost), limit, free)


def _minimal_context(model: ModelInfo, cost: RowCost) -> int:
    return cost.bytes(min(model.context_len, MIN_CONTEXT_TOKENS))
