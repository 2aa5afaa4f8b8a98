"""Decide whether memory suffices for a new request, and for the next token of the active ones."""

from typing import Final, Protocol

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache
from msgspec import Struct

from lmwire_protocol import RequestError

from ..engine.interface import InsufficientMemory, ModelInfo
from ..models.device_memory import format_bytes
from ..models.load_estimate import MIN_CONTEXT_TOKENS
from .batching import assign_buckets, max_padding_tokens
from .caches import flatten_caches

CACHE_STEP_TOKENS: Final = 256
"""Tokens by which mlx-lm's caches grow at a time."""
RESERVED_ANSWER_TOKENS: Final = 256
"""Answer tokens for which memory is reserved at admission. Few answers reach their max_tokens."""
PROBE_TOKENS: Final = 8
CACHE_FRACTION: Final = 0.25
"""Share of the budget for the prefix cache."""
MAX_CACHE_BYTES: Final = 8 * 2**30
"""Maximum size of the prefix cache, in bytes."""


class RowCost(Struct, frozen=True):
    """The memory of one row of a batch."""

    fixed_bytes: int
    """Size of the recurrent states, which do not grow, in bytes."""
    growing: tuple[tuple[int, int | None], ...]
    """Pairs of bytes per token, and the length in tokens at which that part stops growing; None if it never stops."""

    @classmethod
    def measure(cls, network: nn.Module) -> "RowCost":
        """Measure the caches of a model. Evaluates nothing, so the weights need not be read yet."""
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
                allocated = (keys if isinstance(keys, mx.array) else keys[0]).shape[2]  # a tuple if quantized
                growing[window] = growing.get(window, 0) + layer.nbytes // allocated
        return cls(fixed, tuple((size, window) for window, size in growing.items()))

    @property
    def token_bytes(self) -> int:
        """Bytes for each further token at any length."""
        return sum(size for size, window in self.growing if window is None)

    def cached_bytes(self, length: int, snapshots: int) -> int:
        """Return the size of prefix cache entries, in bytes.

        Args:
            length: Number of tokens.
            snapshots: Number of snapshots of the layers that cannot be sliced.
        """
        windows = sum(size * window for size, window in self.growing if window is not None)
        return self.token_bytes * length + snapshots * (self.fixed_bytes + windows)

    def bytes(self, length: int) -> int:
        """Return the size of a row of `length` tokens, in bytes."""
        steps = -(-length // CACHE_STEP_TOKENS) * CACHE_STEP_TOKENS
        return self.fixed_bytes + sum(
            size * (steps if window is None else min(steps, window)) for size, window in self.growing
        )


class MemoryBudget(Struct, frozen=True):
    """The memory that a loaded model shares with its requests and caches."""

    total_bytes: int
    """Maximum for everything."""
    resident_bytes: int
    """Memory in use without any request: the weights, and everything else of this process."""
    weights_bytes: int
    """Size of the weights, which each batch reads in each step."""
    row_cost: RowCost

    @classmethod
    def measure(cls, model: ModelInfo, cost: RowCost, limit: int) -> "MemoryBudget":
        """Return the budget of a model that is in memory. It suffices for a short answer even after a forced load.

        Args:
            model: The model's description.
            cost: The memory of its rows.
            limit: Maximum for everything, in bytes.
        """
        taken = mx.get_active_memory()
        return cls(max(limit, taken + short_answer_bytes(model, cost)), taken, model.weights_bytes, cost)

    @property
    def max_cache_bytes(self) -> int:
        """Maximum size of the prefix cache."""
        return min(int(CACHE_FRACTION * self.total_bytes), MAX_CACHE_BYTES)

    @property
    def max_padding_tokens(self) -> float:
        """Tokens of padding from which another batch is cheaper."""
        return max_padding_tokens(self.weights_bytes, self.row_cost.token_bytes)


class EvictableCache(Protocol):
    """A cache that can shrink when requests need memory."""

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        ...

    def evict(self, bytes: int) -> int:
        """Evict at least `bytes`, if possible, and return the number of bytes freed."""
        ...


class Admission:
    """Keeps the requests of a runner within its memory.

    Args:
        budget: The memory of the model and its requests.
        cached: Shrinks before a request has to wait.
    """

    def __init__(self, budget: MemoryBudget, cached: EvictableCache) -> None:
        self.budget = budget
        self._cached = cached

    def check(
        self, lengths: list[int], prompt_tokens: int, max_tokens: int | None, rows: int, media_bytes: int = 0
    ) -> None:
        """Make sure that memory suffices for a request, by evicting cache entries if necessary.

        Args:
            lengths: Tokens of each active row.
            prompt_tokens: Length of the prompt.
            max_tokens: Maximum length of each answer.
            rows: Number of choices.
            media_bytes: Size of the request's media input, cached or not: it may be evicted here.

        Raises:
            RequestError: out_of_memory, if the request can never fit.
            InsufficientMemory: if the request fits only after others have ended.
        """
        new = [
            prompt_tokens + (RESERVED_ANSWER_TOKENS if max_tokens is None else min(max_tokens, RESERVED_ANSWER_TOKENS))
        ] * rows
        reserved = [length + RESERVED_ANSWER_TOKENS for length in lengths]
        if self._rows_bytes(new) + media_bytes > self.budget.total_bytes - self.budget.resident_bytes:
            raise self._never(new, media_bytes, "")
        if not self._fit(reserved + new, media_bytes):
            if reserved:
                raise InsufficientMemory
            raise self._never(new, media_bytes, f", and {format_bytes(self._cached.bytes)} are pinned in the cache")

    def is_over_budget(self, lengths: list[int]) -> bool:
        """Return whether the next step exceeds the budget, so that a request has to end.

        Args:
            lengths: Tokens of each active row.
        """
        return not self._fit([length + 1 for length in lengths])

    def _fit(self, lengths: list[int], others: int = 0) -> bool:
        """Return whether rows and other bytes fit, if necessary after evicting cache entries."""
        free = self.budget.total_bytes - self.budget.resident_bytes - self._cached.bytes - others
        if free >= 0 and (not lengths or len(lengths) * self.budget.row_cost.bytes(max(lengths)) <= free):
            return True  # even if all are padded to the longest: the common case, and quick to compute
        excess = self._rows_bytes(lengths) - free
        return excess <= 0 or self._cached.evict(excess) >= excess

    def _rows_bytes(self, lengths: list[int]) -> int:
        """Return the size of rows in bytes. The rows of a batch are padded to its longest."""
        batches: dict[int, list[int]] = {}
        for row, home in assign_buckets(dict(enumerate(lengths)), self.budget.max_padding_tokens).items():
            batches.setdefault(home, []).append(lengths[row])
        return sum(len(batch) * self.budget.row_cost.bytes(max(batch)) for batch in batches.values())

    def _never(self, new: list[int], media_bytes: int, besides: str) -> RequestError:
        budget = self.budget
        answers = f"{len(new)} answers" if len(new) > 1 else "an answer"
        answer_bytes = len(new) * budget.row_cost.bytes(new[0])
        need = f"{answers} of {new[0]} tokens, prompt included, needs {format_bytes(answer_bytes)}"
        need += f", besides {format_bytes(media_bytes)} for its images and sounds" * (media_bytes > 0)
        resident, total = format_bytes(budget.resident_bytes), format_bytes(budget.total_bytes)
        problem = f"{need}; the model takes {resident} of the {total} that there are{besides}"
        return RequestError("out_of_memory", problem)


def short_answer_bytes(model: ModelInfo, cost: RowCost) -> int:
    """Return the size of a short answer, which must fit beside the weights, in bytes."""
    return cost.bytes(min(model.context_len, MIN_CONTEXT_TOKENS))
