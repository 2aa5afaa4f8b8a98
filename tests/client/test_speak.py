"""Speech on both clients, from the mock worker."""

import asyncio
import io
import json
import wave
from pathlib import Path

import pytest

from lmwire import UnsupportedByWorker, speech_samples
from lmwire.protocol.session import ClientSession
from lmwire.responses.speech import assemble_wav
from lmwire_protocol import Hello, encode_event, events
from support.process.fake_worker import fake
from support.process.mock_host import mock
from support.protocol.both_clients import CLIENTS, SECONDS, MakeWorker, on_both_clients


def part(audio: str, sample_rate: int = 8000) -> events.Audio:
    return events.Audio(id="1", index=0, sample_rate=sample_rate, audio=audio)


@on_both_clients
async def test_a_speech_yields_its_parts_and_then_has_its_result(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        async with worker.speak("the sea", voice="ada", seed=7) as speech:
            parts = [part async for part in speech]
        assert [part.sample_rate for part in parts] == [8000, 8000]
        assert [len(speech_samples(part)) for part in parts] == [1600, 1600]
        result = speech.result
        assert (result.finish_reason, result.duration_s, result.seed) == ("stop", 0.2, 7)


@on_both_clients
async def test_a_whole_speech_is_a_wav_file(make_worker: MakeWorker) -> None:
    async with make_worker(mock()) as worker:
        await worker.load("mock")
        content = await worker.speak("the wide sea").wav()
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()) == (1, 2, 8000, 2400)


@pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
def test_exiting_a_speech_early_cancels_it(make_worker: MakeWorker, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"rules": [{"match": {"text": "."}, "reply": {"then": "wait"}}]}))

    async def leave() -> None:
        async with make_worker(mock("--scenario", str(scenario))) as worker:
            await worker.load("mock")
            async with worker.speak("one two") as speech:
                async for _ in speech:
                    break
            while (await worker.stats()).requests.cancelled == 0:
                pass

    asyncio.run(asyncio.wait_for(leave(), SECONDS))


@on_both_clients
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
    session.receive(encode_event(events.HelloDone("1", 1, "w", 1, [], [], events.Limits(1, 1, 1, 1))))
    session.receive(b'{"event":"audio","id":"1"}\n')
    assert session.violation and "audio" in str(session.violation)
