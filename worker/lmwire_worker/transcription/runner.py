"""Run a speech model: recordings, one window of one of them at a time."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lmwire_protocol import RequestError, Tokenize, Transcribe

from ..engine.interface import (
    AdmittedRequest,
    InferenceCommand,
    ModelInfo,
    Preparation,
    RunnerEvent,
    TranscriptionProgress,
    TranscriptSegment,
)
from ..engine.preparation import PreparationThreads, Prepared
from ..media import MediaReader, Sound, find_media_refs
from ..models.uncached_runner import UncachedRunner
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


class TranscriptionRunner(UncachedRunner[_TranscribeState]):
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        transcriber: The model, with its weights in memory.
        model: Its description.
        reader: Reads recordings.
    """

    max_batch_size = MAX_BATCH_SIZE

    def __init__(self, transcriber: Transcriber, model: ModelInfo, reader: MediaReader) -> None:
        super().__init__()
        self.model = model
        self.transcriber: Transcriber | None = transcriber
        self._sample_rate = transcriber.sample_rate
        self._reader = reader
        self.preparer = PreparationThreads({"recording": 1})
        self.resampler = ThreadPoolExecutor(1, "resample")

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """Read a recording and resample its first chunk in threads; see `ModelRunner`."""
        if not isinstance(request, Transcribe):
            return None
        return self.preparer.start(
            "recording",
            partial(_open_recording, self._sample_rate, self.resampler),
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
        assert isinstance(request, Transcribe) and isinstance(prepared, Prepared) and self.transcriber is not None
        recording: Recording = prepared.result()
        self.transcriber.check(request)
        self.requests.append(
            _TranscribeState(key, recording.duration_s, self.transcriber.transcribe(recording, request))
        )
        return AdmittedRequest(prompt_tokens=0)

    def step(self) -> list[RunnerEvent]:
        """Transcribe one window of one recording; see `ModelRunner`."""
        held = self.requests[0]
        try:
            window = next(held.windows, None)
        except BaseException as error:
            return self._fail(held.key, error)
        if window is None:
            self.requests.popleft()
            return [TranscriptionProgress(held.key, held.duration_s, held.duration_s, is_complete=True)]
        self.requests.rotate(-1)
        done_s = min(window.done_s, held.duration_s)
        events: list[RunnerEvent] = [TranscriptionProgress(held.key, done_s, held.duration_s, window.language)]
        for segment in (part for whole in window.segments for part in split_segment(whole)):
            events.append(TranscriptSegment(held.key, segment.start_s, segment.end_s, segment.text, segment.words))
        return events

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """Raise unsupported: speech models take no text."""
        raise RequestError("unsupported", f"{self.model.path} takes no text")

    def _release(self) -> None:
        self._reader.close()
        self.preparer.close()
        self.resampler.shutdown(wait=False, cancel_futures=True)
        self.transcriber = None


def _open_recording(sample_rate: int, resampler: ThreadPoolExecutor, media: Sequence[Any]) -> Recording:
    (sound,) = media
    assert isinstance(sound, Sound)
    return open_recording(sound, sample_rate, resampler)
