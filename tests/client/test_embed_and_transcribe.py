"""Vectors and transcripts, from the mock worker."""

import json
from array import array
from pathlib import Path

import pytest

from lmwire import LmwireError, RequestFailed, UnsupportedByWorker
from lmwire.protocol.session import ClientSession
from lmwire.responses.values import assemble_vectors
from lmwire_protocol import Hello, ImagePart, Media, TextPart, Transcribe, encode_embedding, encode_event, events
from support.process.fake_worker import fake
from support.process.mock_host import mock
from support.protocol.both_clients import MakeWorker, on_one_client


@on_one_client
async def test_texts_become_vectors_in_their_order(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        found = await worker.embed(["the sea", "the hill", TextPart("the sea")])
        assert found.vectors[0] == found.vectors[2] != found.vectors[1]
        assert [len(vector) for vector in found.vectors] == [8, 8, 8]
        assert found.usage.prompt_tokens == 6


@on_one_client
async def test_vectors_are_truncated_and_normalized_on_request(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        (raw,) = (await worker.embed(["the sea"], normalize=False)).vectors
        (cut,) = (await worker.embed(["the sea"], dimensions=3)).vectors
        assert sum(number**2 for number in cut) == pytest.approx(1)
        assert [number / cut[0] for number in cut] == pytest.approx([number / raw[0] for number in raw[:3]])


@on_one_client
async def test_images_are_inputs_too(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        image = {"type": "image", "media": {"path": "/a.png"}}
        found = await worker.embed([image, ImagePart(Media(path="/a.png"))])
        assert found.vectors[0] == found.vectors[1]


@on_one_client
async def test_a_text_instead_of_a_list_is_an_error(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        with pytest.raises(TypeError, match="inputs must be a list"):
            await worker.embed("the sea")


@on_one_client
async def test_a_refused_embed_is_raised_and_the_worker_goes_on(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        with pytest.raises(RequestFailed) as failure:
            await worker.embed(["the sea"], dimensions=9)
        assert failure.value.field == "dimensions"
        assert (await worker.ping()).state == "idle"


@on_one_client
async def test_a_transcript_yields_its_segments_and_then_has_its_result(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        async with worker.transcribe({"path": "The sea. The hill"}, words=True, language="de") as transcript:
            segments = [segment async for segment in transcript]
        assert [(segment.text, segment.start_s, segment.end_s) for segment in segments] == [
            ("The sea. ", 0, 2),
            ("The hill", 2, 4),
        ]
        assert [word.text for word in segments[1].words] == ["The ", "hill"]
        result = transcript.result
        assert (result.finish_reason, result.duration_s, result.language) == ("stop", 4, "de")


@on_one_client
async def test_the_text_of_a_recording_is_one_call(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        assert await worker.transcribe(b"RIFF").text() == "data"
        assert await worker.transcribe(Path(__file__)).text() == "data"
        assert await worker.transcribe(Media(url="https://example.org/a.mp3")).text() == "https://example.org/a.mp3"


def test_a_vector_is_assembled_from_parts_in_either_encoding() -> None:
    long, short = array("f", range(5000)), array("f", [0.5])
    lines = encode_embedding("1", 1, long, numbers=False) + encode_embedding("1", 0, short, numbers=True)
    session = ClientSession()
    session.send(Transcribe(audio=Media(data="")))
    (arrival,) = session.receive(lines)
    deltas = [event for event in arrival.events if isinstance(event, events.Embedding)]
    assert assemble_vectors(deltas, 2) == [short, long]


@pytest.mark.parametrize("deltas", [[], [(0, 2, 4)], [(0, 0, 4)], [(1, 0, 2)], [(0, 0, 2), (0, 0, 2)]])
def test_incomplete_vectors_are_an_error(deltas: list[tuple[int, int, int]]) -> None:
    sent = [events.Embedding(id="1", index=i, offset=offset, dims=dims, embedding=[1, 2]) for i, offset, dims in deltas]
    with pytest.raises(LmwireError):
        assemble_vectors(sent, 1)


@pytest.mark.parametrize("event", ["embedding", "segment"])
def test_a_broken_vector_or_segment_is_a_violation(event: str) -> None:
    session = ClientSession()
    session.send(Hello())
    session.receive(
        encode_event(
            events.HelloDone(
                id="1", protocol=1, worker="w", pid=1, engines=[], features=[], limits=events.Limits(1, 1, 1, 1)
            )
        )
    )
    session.receive(json.dumps({"event": event, "id": "1"}).encode() + b"\n")
    assert session.violation and event in str(session.violation)


@on_one_client
async def test_a_worker_without_these_features_is_not_asked(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        with pytest.raises(UnsupportedByWorker, match="embed"):
            await worker.embed(["the sea"])
        with pytest.raises(UnsupportedByWorker, match="transcribe"):
            await worker.transcribe(b"RIFF").text()
