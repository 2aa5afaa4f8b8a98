"""Whether there is memory for one more request, and for the next token of those that run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import RequestError

from ..engine.interface import InsufficientMemory, ModelInfo
from ..models.memory_budget import check_fits, in_words
from .batching import homes, padding_worth
from .prefix_cache import parts

STEP: Final = 256
"""Tokens by which mlx-lm's caches grow."""
AHEAD: Final = 256
"""Tokens of an answer for which memory is promised when it starts. What max_tokens allows is hardly ever used up."""
MINIMAL_CONTEXT: Final = 1024
"""Tokens for which there must be memory for a model to be loaded."""
TRIAL_TOKENS: Final = 8
CACHE_SHARE: Final = 0.25
"""Of the budget, for what is kept of requests,"""
LARGEST_CACHE: Final = 8 * 2**30
"""but so many bytes at most."""


@dataclass(frozen=True)
class RowCost:
    """What a row of a batch takes."""

    fixed: int
    """Bytes at any length: recurrent states."""
    growing: tuple[tuple[int, int | None], ...]
    """Bytes a token, and the tokens after which they grow no more; None for never."""

    @classmethod
    def of(cls, network: nn.Module) -> "RowCost":
        """Reads it off a model's caches. Evaluates nothing, so the weights need not be there yet."""
        cache = make_prompt_cache(network)
        network(mx.zeros((1, TRIAL_TOKENS), mx.int32), cache=cache)
        fixed = 0
        growing: dict[int | None, int] = {}
        for layer in parts(cache):
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

    def kept_bytes(self, length: int, snapshots: int) -> int:
        """What the prefix cache keeps of so many tokens, and so many times of the layers that cannot be cut."""
        windows = sum(size * window for size, window in self.growing if window is not None)
        return self.token_bytes * length + snapshots * (self.fixed + windows)

    def bytes(self, length: int) -> int:
        """What a row of so many tokens takes."""
        steps = -(-length // STEP) * STEP
        return self.fixed + sum(
            size * (steps if window is None else min(steps, window)) for size, window in self.growing
        )


@dataclass(frozen=True)
class Room:
    """What a loaded model's requests and caches share."""

    budget: int
    """Bytes for everything."""
    taken: int
    """Bytes of it that are taken while there is no request: the weights, and whatever else this process holds."""
    weights: int
    """Bytes of the weights, which each batch reads in each step."""
    cost: RowCost

    @classmethod
    def beside(cls, model: ModelInfo, cost: RowCost, limit: int) -> "Room":
        """With what MLX holds now taken. A model that was forced in may still give a short answer."""
        taken = mx.get_active_memory()
        return cls(max(limit, taken + _minimal_context(model, cost)), taken, model.weights_bytes, cost)

    @property
    def cache_bytes(self) -> int:
        """For what is kept of requests, at most."""
        return min(int(CACHE_SHARE * self.budget), LARGEST_CACHE)

    @property
    def padding(self) -> float:
        """Tokens of padding that a batch of its own is worth."""
        return padding_worth(self.weights, self.cost.token_bytes)


class Cached(Protocol):
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

    def __init__(self, room: Room, cached: Cached, lengths: Callable[[], list[int]]) -> None:
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
        new = [prompt_tokens + (AHEAD if max_tokens is None else min(max_tokens, AHEAD))] * rows
        held = [length + AHEAD for length in self._lengths()]
        if self._rows_bytes(new) + media_bytes > self._room.budget - self._room.taken:
            raise self._never(new, media_bytes, "")
        if not self._fit(held + new, media_bytes):
            if held:
                raise InsufficientMemory
            raise self._never(new, media_bytes, f", and {in_words(self._cached.bytes)} are pinned in the cache")

    def overrun(self) -> bool:
        """Whether the next step needs more memory than there is, so that a request has to end."""
        return not self._fit([length + 1 for length in self._lengths()])

    def _fit(self, lengths: list[int], others: int = 0) -> bool:
        """Whether there is memory for rows so long and other bytes, if need be after something cached was given up."""
        free = self._room.budget - self._room.taken - self._cached.bytes - others
        if free >= 0 and (not lengths or len(lengths) * self._room.cost.bytes(max(lengths)) <= free):
            return True  # all padded to the longest, which is hardly ever too much
        excess = self._rows_bytes(lengths) - free
        return excess <= 0 or self._cached.evict(excess) >= excess

    def _rows_bytes(self, lengths: list[int]) -> int:
        """What rows take: those of a batch are padded to its longest."""
        batches: dict[int, list[int]] = {}
        for row, home in homes(dict(enumerate(lengths)), self._room.padding).items():
            batches.setdefault(home, []).append(lengths[row])
        return sum(len(batch) * self._room.cost.bytes(max(batch)) for batch in batches.values())

    def _never(self, new: list[int], media_bytes: int, besides: str) -> RequestError:
        room = self._room
        rows = f"{len(new)} answers" if len(new) > 1 else "an answer"
        need = f"{rows} of {new[0]} tokens, prompt included, needs {in_words(len(new) * room.cost.bytes(new[0]))}"
        need += f", besides {in_words(media_bytes)} for its images and sounds" * (media_bytes > 0)
        return RequestError(
            "out_of_memory",
            f"{need}; the model takes {in_words(room.taken)} of the {in_words(room.budget)} that there are{besides}",
        )


def check_load(model: ModelInfo, cost: RowCost, limit: int, free: int | None) -> None:
    """See `memory.check_fits`; `cost` is what the model's rows take."""
    check_fits(model, _minimal_context(model, cost), limit, free)


def _minimal_context(model: ModelInfo, cost: RowCost) -> int:
    return cost.bytes(min(model.context_len, MINIMAL_CONTEXT))
