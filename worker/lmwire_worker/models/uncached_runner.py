"""The common part of runners that keep a queue of requests and cache nothing."""

from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from lmwire_protocol import RequestError
from lmwire_protocol.events import CacheStats

from ..engine.interface import Failed, MemoryUsage, RunnerEvent
from .device_memory import is_out_of_memory, measure_freed, memory_usage, release_unused_memory


class KeyedState(Protocol):
    """A request that a runner serves."""

    key: int


State = TypeVar("State", bound=KeyedState)


class UncachedRunner(Generic[State]):
    """A base of `lmwire_worker.engine.interface.ModelRunner`s. `_release` is for a subclass to define."""

    batch_wait_s = 0.0

    def __init__(self) -> None:
        self.requests: deque[State] = deque()
        """The requests in the order of their turns."""

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        """Forget a request; see `ModelRunner`."""
        self.requests = deque(state for state in self.requests if state.key != key)
        return []

    def memory(self) -> MemoryUsage:
        """Return the memory usage of MLX."""
        return memory_usage()

    def cache_stats(self) -> CacheStats | None:
        """Return None: nothing is cached."""
        return None

    def clear_cache(self) -> int:
        """Return 0: nothing is cached."""
        return 0

    def release_caches(self) -> None:
        """See `ModelRunner.release_caches`."""
        release_unused_memory()

    def close(self) -> int:
        """Release the model, and return the bytes freed."""
        return measure_freed(self._release)

    def _release(self) -> None:
        raise NotImplementedError

    def _fail(self, key: int, error: BaseException) -> list[RunnerEvent]:
        """Forget a request for which the model library raised an error, and return the failure."""
        self.remove(key)
        code = "out_of_memory" if is_out_of_memory(error) else "engine_error"
        return [Failed(key, RequestError(code, f"the model library failed: {type(error).__name__}: {error}"))]
