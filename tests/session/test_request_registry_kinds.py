"""Vectors and transcripts in the registry: the last one ends the request, and nothing comes after an end."""

from array import array

from lmwire_protocol import Command, Embed, Media, Transcribe
from lmwire_worker.engine.interface import EmbeddingOutput, TranscriptionProgress, TranscriptSegment
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.request_state import Request
from lmwire_worker.session.v1 import EVENT_WRITER
from support.runners.registry_recorder import Recorder

EMBED = Embed(input=["a", "b"], encoding="float")
TRANSCRIBE = Transcribe(audio=Media(data=""))


def running(registry: RequestRegistry, command: Command) -> Request:
    """A request that the engine has taken up."""
    registry.accept(request := Request("1", command, EVENT_WRITER, 10, registry.clock))
    assert registry.start(request)
    return request


def vector(index: int) -> EmbeddingOutput:
    return EmbeddingOutput(1, index, array("f", [0.5, index]), 3)


def test_the_last_vector_ends_its_request(registry: RequestRegistry, outbox: Recorder) -> None:
    request = running(registry, EMBED)
    for index in (1, 0):
        registry.deliver([(request, vector(index))])
    first, second, done = outbox.lines
    assert (first["index"], first["embedding"], second["index"]) == (1, [0.5, 1], 0)
    assert (done["event"], done["count"], done["dimensions"]) == ("done", 2, 2)


def test_no_vector_comes_after_the_end(registry: RequestRegistry, outbox: Recorder) -> None:
    request = running(registry, EMBED)
    registry.end(request, request.cancellation())
    registry.deliver([(request, vector(0))])
    assert [line["event"] for line in outbox.lines] == ["error"]
    assert outbox.lines[0]["code"] == "cancelled"


def test_segments_are_counted_and_the_recordings_end_ends_the_request(
    registry: RequestRegistry, outbox: Recorder
) -> None:
    request = running(registry, TRANSCRIBE)
    registry.deliver([(request, TranscriptionProgress(1, 0.0, 9.0, "en"))])
    for start in (0.0, 2.0):
        registry.deliver([(request, TranscriptSegment(1, start, start + 1, " a"))])
    registry.deliver([(request, TranscriptionProgress(1, 9.0, 9.0, is_complete=True))])
    first, second, done = outbox.lines
    assert [(line["index"], line["start_s"]) for line in (first, second)] == [(0, 0), (1, 2)]
    assert (done["finish_reason"], done["duration_s"], done["language"]) == ("stop", 9, "en")


def test_a_cancelled_transcription_reports_its_progress_and_nothing_after(
    registry: RequestRegistry, outbox: Recorder
) -> None:
    request = running(registry, TRANSCRIBE)
    registry.deliver([(request, TranscriptionProgress(1, 0.0, 9.0, "en"))])
    request.cancel_reason = "cancelled"
    registry.end(request, request.cancellation())
    registry.deliver([(request, TranscriptSegment(1, 0.0, 1.0, " a"))])
    registry.deliver([(request, TranscriptionProgress(1, 9.0, 9.0, is_complete=True))])
    (done,) = outbox.lines
    assert (done["finish_reason"], done["duration_s"], done["language"]) == ("cancelled", 9, "en")


def test_a_queued_transcription_is_cancelled_at_once(registry: RequestRegistry, outbox: Recorder) -> None:
    registry.accept(Request("1", TRANSCRIBE, EVENT_WRITER, 10, registry.clock))
    registry.cancel("2", None)
    reply, done = outbox.lines
    assert (reply["id"], done["finish_reason"], done["duration_s"]) == ("2", "cancelled", 0)
