"""The speech lane: recordings, a window of one of them at a time."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lmwire_protocol import RequestError, Tokenize, Transcribe
from lmwire_protocol.events import CacheStats

from ..engine.interface import (
    AdmittedRequest,
    Failed,
    InferenceCommand,
    MemoryUsage,
    ModelInfo,
    Preparation,
    RunnerEvent,
    TranscriptionProgress,
    TranscriptSegment,
)
from ..media import Gathered, Reader, Sound, items_of
from ..models.memory_budget import is_out_of_memory, measure_freed, memory_usage
from .recording import Recording
from .transcriber import Listener, Window, fitting

ROWS: Final = 8
"""Recordings that are in memory at once."""


@dataclass
class _Held:
    key: int
    duration_s: float
    windows: Iterator[Window]


class TranscriptionRunner:
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        listener: The model with its weights in memory.
        model: What is reported of it.
        reader: Reads recordings.
    """

    max_batch_size = ROWS
    batch_wait_s = 0.0

    def __init__(self, listener: Listener, model: ModelInfo, reader: Reader) -> None:
        self.model = model
        self._listener: Listener | None = listener
        self._reader = reader
        self._requests: deque[_Held] = deque()
        """In the order in which their turns come."""

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        return self._reader.read(items_of(request), ready) if isinstance(request, Transcribe) else None

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        assert isinstance(request, Transcribe) and isinstance(prepared, Gathered) and self._listener is not None
        (sound,) = prepared.results()
        assert isinstance(sound, Sound)
        self._listener.check(request)
        recording = Recording(sound, self._listener.rate)
        self._requests.append(_Held(key, recording.duration_s, self._listener.listen(recording, request)))
        return AdmittedRequest(prompt_tokens=0)

    def step(self) -> list[RunnerEvent]:
        held = self._requests[0]
        try:
            window = next(held.windows, None)
        except Exception as error:
            code = "out_of_memory" if is_out_of_memory(error) else "engine_error"
            failure = RequestError(code, f"the model library failed: {type(error).__name__}: {error}")
            self._requests.popleft()
            return [Failed(held.key, failure)]
        if window is None:
            self._requests.popleft()
            return [TranscriptionProgress(held.key, held.duration_s, held.duration_s, is_complete=True)]
        self._requests.rotate(-1)
        done_s = min(window.done_s, held.duration_s)
        outcomes: list[RunnerEvent] = [TranscriptionProgress(held.key, done_s, held.duration_s, window.language)]
        for segment in (part for whole in window.segments for part in fitting(whole)):
            outcomes.append(TranscriptSegment(held.key, segment.start_s, segment.end_s, segment.text, segment.words))
        return outcomes

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        self._requests = deque(held for held in self._requests if held.key != key)
        return []

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        raise RequestError("unsupported", f"{self.model.path} takes no text")

    def memory(self) -> MemoryUsage:
        return memory_usage()

    def cache_stats(self) -> CacheStats | None:
        return None

    def clear_cache(self) -> int:
        return 0

    def close(self) -> int:
        return measure_freed(self._let_go)

    def _let_go(self) -> None:
        self._reader.close()
        self._listener = None
