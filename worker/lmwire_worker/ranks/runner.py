"""Rank 0's view of a model that all ranks hold: each call of the runner goes to the followers first."""

import itertools
import pickle
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import astuple, replace

from lmwire_protocol import Chat, Command, Generate, Load, RequestError, Tokenize
from lmwire_protocol.events import CacheStats, RankInfo

from ..engine.interface import (
    AdmittedRequest,
    InferenceCommand,
    MemoryUsage,
    ModelLoader,
    ModelRunner,
    Preparation,
    PreparedPrompt,
    RankRunner,
    Report,
    RunnerEvent,
)
from ..process.memory_pressure import MemoryPressure
from .group import LeaderRanks, checksum

REFUSED: Final = ("adapter_path", "draft_path", "kv_bits", "trust_remote_code")
"""Fields of a load that ranks do not support."""
REFUSED_COMMANDS: Final = ("embed", "transcribe", "speak")
"""Commands of models that ranks do not support."""


class RankedLoader:
    """Loads models into all ranks; see `ModelLoader`.

    Args:
        loader: Loads this rank's part. It knows the ranks.
        ranks: The ranks.
    """

    def __init__(self, loader: ModelLoader, ranks: LeaderRanks) -> None:
        self._loader = loader
        self._ranks = ranks
        self._runner: RankedRunner | None = None
        self.names = loader.names
        refused = {*REFUSED_COMMANDS, *(f"load.{field}" for field in REFUSED)}
        self.features = [name for name in loader.features if not {name, name.partition(".")[0]} & refused]

    def prepare(self) -> None:
        """Start the followers, do the slow imports, and connect all ranks."""
        if "mlx_lm" not in self.names:
            self._loader.prepare()  # each load then says what to install
            return
        self._ranks.start()
        self._loader.prepare()
        self._ranks.connect()

    def read_pressure(self) -> MemoryPressure:
        """See `ModelLoader.read_pressure`."""
        return self._loader.read_pressure()

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> ModelRunner:
        """Load a model into all ranks; see `ModelLoader.open`."""
        for field in REFUSED:
            if getattr(request, field):
                problem = f"{field}: a model that is split over ranks does not take it; leave it out"
                raise RequestError("unsupported", problem, field=field)

        last: tuple[Any, ...] = ("resolve", 0, None, "steps")

        def note(*progress: Any) -> None:
            nonlocal last
            last = progress
            report(*progress)

        def release() -> None:
            if self._runner is not None:
                self._runner.is_released = True  # the load releases it in the followers
            release_current_model()

        self._ranks.begin_load(encode(request), lambda: report(*last))
        try:
            runner = self._loader.open(request, note, release)
        except BaseException:
            self._ranks.abandon_load()
            raise
        assert isinstance(runner, RankedRunner)
        self._runner = runner
        return runner

    def model_closed(self) -> None:
        """See `ModelLoader.model_closed`."""
        self._loader.model_closed()

    def flush(self) -> None:
        """See `ModelLoader.flush`."""
        self._loader.flush()


class _Shared:
    """Part of a preparation that the followers have.

    Args:
        number: Its name.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_sent = False
        """They have its prompt."""
        self.is_dropped = False
        """Nobody waits for it any more."""


class RankedPreparation:
    """The preparation of a request by all ranks; see `Preparation`. It is done when rank 0's is.

    Args:
        own: Rank 0's.
        shared: What the followers have of it.
    """

    def __init__(self, own: Preparation, shared: _Shared) -> None:
        self.own = own
        self.shared = shared

    @property
    def done(self) -> bool:
        """See `Preparation.done`."""
        return self.own.done

    def cancel(self) -> None:
        """See `Preparation.cancel`."""
        self.own.cancel()


class RankedRunner:
    """Rank 0's runner of a model that all ranks hold; see `ModelRunner`.

    Args:
        runner: The runner of this rank's part.
        ranks: The ranks.
    """

    def __init__(self, runner: RankRunner, ranks: LeaderRanks) -> None:
        self._runner = runner
        self._ranks = ranks
        sizes = ranks.weights_bytes
        parts = RankInfo(len(sizes), ranks.backend, ranks.split_kind, [*sizes])
        self.model = replace(runner.model, weights_bytes=sum(sizes), ranks=parts)
        self.max_batch_size = runner.max_batch_size
        self.is_released = False
        """The followers have released their parts, or will without a call."""
        self._numbers = itertools.count(1)
        self._dropped: deque[_Shared] = deque()
        """Preparations that nobody waits for any more. Any thread may drop one."""
        self._share_lock = threading.Lock()
        self._checksum = 0

    @property
    def batch_wait_s(self) -> float:
        """See `ModelRunner.batch_wait_s`."""
        return self._runner.batch_wait_s

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """See `ModelRunner.prepare`.

        The followers get the prompt, and compile only the grammar, which is the same for all: by a limit of time, one
        rank might refuse what another one takes.
        """
        if not isinstance(request, Generate | Chat):
            return self._runner.prepare(request, ready, size)
        self._forget_dropped()
        shared = _Shared(next(self._numbers))

        def share(prompt: PreparedPrompt) -> None:
            with self._share_lock:
                if not shared.is_dropped and not self.is_released:
                    self._ranks.write("prepare", (shared.number, encode(request), size, astuple(prompt)))
                    shared.is_sent = True

        own = self._runner.prepare(request, ready, size, share=share)
        assert own is not None
        prepared = RankedPreparation(own, shared)
        weakref.finalize(prepared, self._dropped.append, shared)
        return prepared

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """See `ModelRunner.add`."""
        assert isinstance(request, Generate | Chat)
        self._forget_dropped()
        if not isinstance(prepared, RankedPreparation):
            self._ranks.write("add", (key, encode(request), seed, plain_text, 0))
            return self._runner.add(key, request, seed, plain_text=plain_text, prepared=prepared)
        if prepared.shared.is_sent:  # otherwise its failure is raised now
            self._ranks.write("add", (key, None, seed, plain_text, prepared.shared.number))
        admitted = self._runner.add(key, request, seed, plain_text=plain_text, prepared=prepared.own)
        prepared.shared.is_sent = False  # they have taken it, too
        return admitted

    def step(self) -> list[RunnerEvent]:
        """See `ModelRunner.step`."""
        self._ranks.begin_call("step", self._checksum)
        try:
            events = self._runner.step()
        except Exception:
            self._ranks.wait_for_loss()
            raise
        self._ranks.end_call()
        self._checksum = checksum(events, self._checksum)
        return events

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        """See `ModelRunner.remove`."""
        self._ranks.write("remove", key)
        events = self._runner.remove(key)
        self._checksum = checksum(events, self._checksum)
        return events

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """See `ModelRunner.tokenize`. It needs no other rank."""
        return self._runner.tokenize(request, prepared)

    def memory(self) -> MemoryUsage:
        """See `ModelRunner.memory`: that of the rank which has used the most."""
        return self._ranks.memory(self._runner.memory())

    def cache_stats(self) -> CacheStats | None:
        """See `ModelRunner.cache_stats`: rank 0's part of the cache."""
        return self._runner.cache_stats()

    def clear_cache(self) -> int:
        """See `ModelRunner.clear_cache`."""
        self._ranks.write("clear_cache")
        return self._runner.clear_cache()

    def release_caches(self) -> None:
        """See `ModelRunner.release_caches`."""
        self._ranks.write("release_caches")
        self._runner.release_caches()

    def close(self) -> int:
        """See `ModelRunner.close`."""
        with self._share_lock:
            if not self.is_released:
                self._ranks.write("close")
            self.is_released = True
        return self._runner.close()

    def _forget_dropped(self) -> None:
        """Let the followers drop the preparations of requests that never started."""
        while self._dropped:
            shared = self._dropped.popleft()
            with self._share_lock:
                shared.is_dropped = True
                if shared.is_sent:
                    self._ranks.write("forget", shared.number)


def encode(command: Command) -> bytes:
    """Return a command as followers read it.

    It is not decoded as a host's lines are, since a bridge's messages may have fields and roles that those may not.
    """
    return pickle.dumps(command)
