"""Runs a speech model: recordings, one window of one of them at a time."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

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
from ..engine.preparation import Prepared, Preparer
from ..media import MediaReader, Sound, find_media_refs
from ..models.memory_budget import is_out_of_memory, measure_freed, memory_usage, release_unused_memory
from .recording import Recording, open_recording
from .transcriber import Transcriber, Window, split_segment

MAX_BATCH_SIZE: Final = 8
"""Maximum number of recordings in work."""


@dataclass
class _TranscribeState:
    """A request in work, and the rest of its windows."""

    key: int
    duration_s: float
    windows: Iterator[Window]


class TranscriptionRunner:
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        transcriber: The model, with its weights in memory.
        model: Its description.
        reader: Reads recordings.
    """

    max_batch_size = MAX_BATCH_SIZE
    batch_wait_s = 0.0

    def __init__(self, transcriber: Transcriber, model: ModelInfo, reader: MediaReader) -> None:
        self.model = model
        self._transcriber: Transcriber | None = transcriber
        self._sample_rate = transcriber.sample_rate
        self._reader = reader
        self._preparer = Preparer({"recording": 1})
        self._resampler = ThreadPoolExecutor(1, "resample")
        self._requests: deque[_TranscribeState] = deque()
        """The requests in the order of their turns."""

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """Read a recording and resample its first chunk in threads; see `ModelRunner`."""
        if not isinstance(request, Transcribe):
            return None
        return self._preparer.start(
            "recording",
            partial(_open_recording, self._sample_rate, self._resampler),
            ready,
            lambda done: self._reader.read(find_media_refs(request), done),
        )

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """Queue a `transcribe`; see `ModelRunner`."""
        assert isinstance(request, Transcribe) and isinstance(prepared, Prepared) and self._transcriber is not None
        recording: Recording = prepared.result()
        self._transcriber.check(request)
        self._requests.append(
            _TranscribeState(key, recording.duration_s, self._transcriber.transcribe(recording, request))
        )
        return AdmittedRequest(prompt_tokens=0)

    def step(self) -> list[RunnerEvent]:
        """Transcribe one window of one recording; see `ModelRunner`."""
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
        events: list[RunnerEvent] = [TranscriptionProgress(held.key, done_s, held.duration_s, window.language)]
        for segment in (part for whole in window.segments for part in split_segment(whole)):
            events.append(TranscriptSegment(held.key, segment.start_s, segment.end_s, segment.text, segment.words))
        return events

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        """Forget a request; see `ModelRunner`."""
        self._requests = deque(held for held in self._requests if held.key != key)
        return []

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """Raise unsupported: speech models take no text."""
        raise RequestError("unsupported", f"{self.model.path} takes no text")

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
        self._reader.close()
        self._preparer.close()
        self._resampler.shutdown(wait=False, cancel_futures=True)
        self._transcriber = None


def _open_recording(sample_rate: int, resampler: ThreadPoolExecutor, media: Sequence[Any]) -> Recording:
    (sound,) = media
    assert isinstance(sound, Sound)
    return open_recording(sound, sample_rate, resampler)
