"""Recovery from an exception in a step.

After an exception in the middle of a step, no row's cache can be trusted, and one row may be the cause. So all rows
start again from their tokens, one by one: the rows at fault fail then, and the others continue. If rows fail together
that work alone, they all fail; if memory ran out, only the longest does.
"""

from mlx import nn

from lmwire_protocol import RequestError

from ..engine.interface import Failed, RunnerEvent
from ..models.memory_budget import is_out_of_memory
from .active_requests import ActiveRequests
from .batching import prefill
from .cache_manager import CacheManager
from .media_backend import MediaBackend
from .sequence import Sequence


class Recovery:
    """Restarts sequences after a failed step.

    Args:
        network: The model.
        active: The requests.
        cache_manager: Frees memory, if that ran out.
        media: Computes prompts with media; None for a model without.
    """

    def __init__(
        self, network: nn.Module, active: ActiveRequests, cache_manager: CacheManager, media: MediaBackend | None
    ) -> None:
        self._network = network
        self._active = active
        self._cache_manager = cache_manager
        self._media = media
        self._restarted: set[Sequence] = set()
        """The sequences that were stopped since the last successful step."""

    @property
    def is_pending(self) -> bool:
        """True if sequences wait for their restart."""
        return bool(self._active.restarting)

    def stop_all(self, error: BaseException) -> list[RunnerEvent]:
        """Take all rows out of the batch, to restart them; return the failures of rows that failed again.

        Args:
            error: The exception of the step.
        """
        sequences = list(self._active.in_batch.values())
        self._active.reset()
        if not self._restarted.issuperset(sequences):
            self._restarted.update(sequences)
            self._active.restarting.extend(sequences)
            if is_out_of_memory(error):
                self._cache_manager.evict(self._cache_manager.bytes)
            return []
        return self._fail(sequences, error) if sequences else []

    def restart_next(self) -> list[RunnerEvent]:
        """Compute the cache of the next stopped sequence, and put it into a batch again."""
        sequence = self._active.restarting.popleft()
        sequence.restart()
        try:
            cache, cached_tokens = None, 0
            if self._media and sequence.media:
                cache = self._media.compute_cache(sequence.media, sequence.prompt[:-1])
                cached_tokens = len(sequence.prompt) - 1
            cache = prefill(self._network, sequence.tokens, cache, cached_tokens)
        except BaseException as error:
            self._active.drop(sequence.key, self._cache_manager)
            return [failure(sequence.key, error)]
        self._active.start_prefilled(sequence.key, cache)
        return []

    def step_succeeded(self) -> None:
        """Record that all rows work together."""
        self._restarted.clear()

    def _fail(self, sequences: list[Sequence], error: BaseException) -> list[RunnerEvent]:
        longest = max(sequences, key=lambda sequence: sequence.length)
        failed = dict.fromkeys(row.key for row in ([longest] if is_out_of_memory(error) else sequences))
        for key in failed:
            del self._active.by_key[key]
        self._active.restarting.extend(sequence for sequence in sequences if sequence.key not in failed)
        return [failure(key, error) for key in failed]


def failure(key: int, error: BaseException) -> Failed:
    """Return the event for a request whose computation raised an exception.

    Args:
        key: The request.
        error: The exception.
    """
    code = "out_of_memory" if is_out_of_memory(error) else "engine_error"
    return Failed(key, RequestError(code, f"the model failed: {type(error).__name__}: {error}"))
