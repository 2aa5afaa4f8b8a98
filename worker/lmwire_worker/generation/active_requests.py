"""The requests that are not complete, and the batch that computes them."""

import copy
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from .batching import Batch, SpeculativeBatch
from .cache_manager import CacheManager
from .media_backend import MediaInput
from .sequence import Sequence


class ActiveRequests:
    """Sequences by request and by row.

    Args:
        new_batch: Makes an empty batch.
    """

    def __init__(self, new_batch: Callable[[], Batch | SpeculativeBatch]) -> None:
        self.by_key: dict[int, list[Sequence]] = {}
        """The choices of each request that have not ended."""
        self.in_batch: dict[int, Sequence] = {}
        """The sequences in the batch, by uid."""
        self.restarting: deque[Sequence] = deque()
        """Sequences that a failed step stopped, and that start again one by one."""
        self._new_batch = new_batch
        self._batch: Batch | SpeculativeBatch | None = None

    @property
    def batch(self) -> Batch | SpeculativeBatch:
        """The batch. It is made when it is first used."""
        if self._batch is None:
            self._batch = self._new_batch()
        return self._batch

    def start(self, cache_manager: CacheManager, sequences: list[Sequence], cache: list[Any] | None) -> None:
        """Put a request into the batch. If its prompt is not cached, one choice computes it for all.

        Args:
            cache_manager: Stores the caches.
            sequences: The choices of the request.
            cache: The cache of the first `prefix_tokens` of the prompt; None for an empty one.
        """
        first = sequences[0]
        is_shared = len(first.prompt) - first.prefix_tokens > 1
        for sequence in sequences[:1] if is_shared else sequences:
            checkpoints = cache_manager.checkpoints(sequence)
            uid = self.batch.add(sequence, sequence.prompt, copy.deepcopy(cache), first.prefix_tokens, checkpoints)
            self._join(sequence, uid)

    def start_prefilled(self, key: int, cache: list[Any]) -> None:
        """Put the waiting choices of a request into the batch.

        Args:
            key: The request.
            cache: The cache of all tokens of each choice but the last.
        """
        for sequence in self.waiting(key):
            uid = self.batch.add_prefilled(sequence, sequence.tokens, copy.deepcopy(cache))
            self._join(sequence, uid)

    def waiting(self, key: int) -> list[Sequence]:
        """Return the choices of a request that wait for the prefill of its prompt."""
        return [sequence for sequence in self.by_key[key] if sequence.uid is None and sequence not in self.restarting]

    def remove_ended(self, sequence: Sequence) -> None:
        """Remove a choice that has ended from its request. Its row stays in the batch."""
        assert sequence.uid is not None
        del self.in_batch[sequence.uid]
        self.by_key[sequence.key].remove(sequence)
        if not self.by_key[sequence.key]:
            del self.by_key[sequence.key]

    def drop(self, key: int, cache_manager: CacheManager) -> None:
        """Remove a request with all of its choices, and store what was computed of them.

        Args:
            key: The request.
            cache_manager: Stores the caches.
        """
        for sequence in self.by_key.pop(key, ()):
            if sequence in self.restarting:
                self.restarting.remove(sequence)
            elif sequence.uid is not None:
                cache_manager.store(sequence, self.batch.checkpoint(sequence.uid))
                self.batch.drop([sequence.uid])
                del self.in_batch[sequence.uid]

    def store_checkpoints(self, sequences: Iterable[Sequence], cache_manager: CacheManager) -> None:
        """Store what was computed of sequences in the batch.

        Args:
            sequences: The sequences.
            cache_manager: Stores the caches.
        """
        for sequence in sequences:
            assert sequence.uid is not None
            cache_manager.store(sequence, self.batch.checkpoint(sequence.uid))

    def reset(self) -> None:
        """Discard the batch with all of its rows. The next request gets a new one."""
        self.in_batch.clear()
        if self._batch is not None:
            self._batch.close()
            self._batch = None

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sequence, with those that are not computed yet."""
        return [sequence.length for sequences in self.by_key.values() for sequence in sequences]

    @property
    def media_inputs(self) -> set[MediaInput]:
        """The images and sounds of the requests."""
        inputs: set[MediaInput] = set()
        for sequences in self.by_key.values():
            inputs |= sequences[0].media_inputs
        return inputs

    @property
    def longest(self) -> int:
        """Key of the request with the longest sequence. Others are padded to it, so its end frees the most."""
        return max(self.by_key, key=lambda key: max(sequence.length for sequence in self.by_key[key]))

    @property
    def max_computed_tokens(self) -> int:
        """Progress of the most advanced prompt that is incomplete, in tokens."""
        prompts = (row for row in self.in_batch.values() if row.computed_tokens < len(row.prompt))
        return max((row.computed_tokens for row in prompts), default=0)

    def _join(self, sequence: Sequence, uid: int) -> None:
        sequence.join_batch(uid)
        self.in_batch[uid] = sequence
