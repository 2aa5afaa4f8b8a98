"""Speech, from the mock worker."""

import io
import wave

import pytest

from lmwire import UnsupportedByWorker, speech_samples
from lmwire.protocol.session import ClientSession
from lmwire.responses.values import assemble_wav
from lmwire_protocol import Hello, encode_event, events
from support.process.fake_worker import fake
from support.process.mock_host import mock
from support.protocol.both_clients import MakeWorker, on_one_client


def part(audio: str, sample_rate: int = 8000) -> events.Audio:
    return events.Audio(id="1", index=0, sample_rate=sample_rate, audio=audio)


@on_one_client
async def test_a_speech_yields_its_parts_and_then_has_its_result(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        async with worker.speak("the sea", voice="ada", seed=7) as speech:
            parts = [part async for part in speech]
        assert [part.sample_rate for part in parts] == [8000, 8000]
        assert [len(speech_samples(part)) for part in parts] == [1600, 1600]
        result = speech.result
        assert (result.finish_reason, result.duration_s, result.seed) == ("stop", 0.2, 7)


@on_one_client
async def test_a_whole_speech_is_a_wav_file(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        content = await worker.speak("the wide sea").wav()
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()) == (1, 2, 8000, 2400)


@on_one_client
async def test_a_worker_that_does_not_speak_is_not_asked(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        with pytest.raises(UnsupportedByWorker, match="speak"):
            await worker.speak("the sea").wav()


def test_a_speech_without_parts_is_an_empty_file() -> None:
    with wave.open(io.BytesIO(assemble_wav([]))) as file:
        assert file.getnframes() == 0


def test_audio_that_is_not_base64_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not base64"):
        speech_samples(part("?"))


def test_a_broken_part_is_a_violation() -> None:
    session = ClientSession()
    session.send(Hello())
    session.receive(
        encode_event(
            events.HelloDone(
                id="1", protocol=1, worker="w", pid=1, engines=[], features=[], limits=events.Limits(1, 1, 1, 1)
            )
        )
    )
    session.receive(b'{"event":"audio","id":"1"}\n')
    assert session.violation and "audio" in str(session.violation)
