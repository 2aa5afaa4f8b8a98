"""Speech with OpenAI's own client: of a tiny model with random weights, and of the mock worker."""

import base64
import io
import json
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import openai
import pytest
from openai import OpenAI

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import asked
from support.models.random_synthesis import write_qwen3_tts

RULES: list[dict[str, Any]] = [
    {"match": {"text": "wait"}, "reply": {"text": "One.", "then": "wait"}},
    {"match": {"text": "fail at once"}, "reply": {"error": {"code": "engine_error"}}},
    {"match": {"text": "fail later"}, "reply": {"text": "One. Two.", "error": {"code": "engine_error"}}},
    {
        "match": {"cmd": "speak", "fields": {"voice": "ada", "instructions": "Calm.", "speed": 1.5}},
        "reply": {"text": "chosen"},
    },
]
WORDS = "one two three four five six seven eight nine ten"
"""The mock's tone for each word takes a tenth of a second, at 8000 samples a second."""
ACTIVE = "lmwire_worker_requests_active"
ENDED = "lmwire_worker_requests_total"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    scenario = tmp_path_factory.mktemp("scenario") / "speech.json"
    scenario.write_text(json.dumps({"rules": RULES}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_qwen3_tts(tmp_path_factory.mktemp("models") / "speaks")


@pytest.fixture(scope="module")
def model_server(folder: Path) -> Iterator[Server]:
    with served(str(folder)) as server:
        yield server


def speak(client: OpenAI, text: str = WORDS, **options: Any) -> bytes:
    options = {"model": "mock", "voice": "alloy", "input": text, **options}
    return client.audio.speech.create(**options).content


def pcm_of(wav: bytes) -> bytes:
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.readframes(file.getnframes())


@pytest.mark.slow
def test_a_real_model_speaks_a_wav_file_with_its_sample_rate(model_server: Server, folder: Path) -> None:
    client = OpenAI(base_url=f"{model_server.url}/v1", api_key="any", max_retries=0)
    options: Any = {"model": str(folder), "response_format": "wav", "extra_body": {"seed": 1}}
    content = speak(client, "Hello there.", **options)
    with wave.open(io.BytesIO(content)) as file:
        assert file.getframerate() == 24_000
        assert file.getnframes() > 0
    assert speak(client, "Hello there.", **options) == content
    assert speak(client, "Hello there.", **options, voice="grace") != content
    with pytest.raises(openai.BadRequestError, match="this model has ada, grace") as failure:
        speak(client, "Hello there.", **options, voice="nobody")
    assert failure.value.param == "voice"


@pytest.mark.parametrize(
    ("audio_format", "media_type"),
    [("mp3", "audio/mpeg"), ("opus", "audio/ogg"), ("aac", "audio/aac"), ("flac", "audio/flac"), ("wav", "audio/wav")],
)
def test_every_format_decodes_to_the_same_speech(client: OpenAI, audio_format: Any, media_type: str) -> None:
    response = client.audio.speech.with_raw_response.create(
        model="mock", voice="alloy", input=WORDS, response_format=audio_format
    )
    assert response.headers["content-type"] == media_type
    with av.open(io.BytesIO(response.content), "r") as container:
        resampler = av.AudioResampler("s16", "mono", 8000)
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
        samples = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    assert len(samples) / 8000 == pytest.approx(1, abs=0.2)  # encoders add silence at the ends
    assert np.sqrt(np.mean(samples.astype(np.float64) ** 2)) == pytest.approx(8000, rel=0.25)
    if audio_format == "flac":
        assert samples.tobytes() == speak(client, response_format="pcm")


def test_samples_alone_are_those_of_the_wav_file(client: OpenAI) -> None:
    assert speak(client, response_format="pcm") == pcm_of(speak(client, response_format="wav"))
    assert len(speak(client, response_format="pcm")) == 16_000


def test_the_default_format_is_mp3(client: OpenAI) -> None:
    with av.open(io.BytesIO(speak(client)), "r") as container:
        assert container.streams.audio[0].codec_context.name.startswith("mp3")


def test_audio_arrives_before_the_speech_has_ended(server: Server, client: OpenAI) -> None:
    before = server.figure(ENDED, outcome="cancelled")
    with client.audio.speech.with_streaming_response.create(
        model="mock", voice="alloy", input="wait", response_format="pcm"
    ) as response:
        parts = response.iter_bytes(1600)
        assert len(next(parts)) == 1600
        server.wait_for(ACTIVE, 1)
    server.wait_for(ENDED, before + 1, outcome="cancelled")
    server.wait_for(ACTIVE, 0)


def test_a_speech_in_events_is_the_same_file(server: Server, client: OpenAI) -> None:
    body = {"model": "mock", "input": WORDS, "response_format": "flac", "stream_format": "sse"}
    answer = asked(server.url, "POST", "/v1/audio/speech", body)
    events = [json.loads(line[6:]) for line in answer.body.decode().split("\n\n") if line.startswith("data: ")]
    assert [event["type"] for event in events[-1:]] == ["speech.audio.done"]
    content = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert content == speak(client, response_format="flac")


def test_voice_instructions_and_speed_reach_the_model(client: OpenAI) -> None:
    chosen = speak(client, voice="ada", instructions="Calm.", speed=1.5, response_format="pcm")
    assert chosen == speak(client, "chosen", response_format="pcm") != speak(client, response_format="pcm")
    assert speak(client, voice={"id": "ada"}, instructions="Calm.", speed=1.5, response_format="pcm") == chosen


def test_a_voice_of_openai_is_reported_as_ignored(client: OpenAI) -> None:
    answers = [
        client.audio.speech.with_raw_response.create(model="mock", voice=voice, input="a", response_format="pcm")
        for voice in ("alloy", "ada")
    ]
    assert [answer.headers.get("x-lmwire-ignored-fields") for answer in answers] == ["voice", None]


def test_an_error_before_the_first_audio_is_an_ordinary_error(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as failure:
        speak(client, "fail at once")
    assert failure.value.code == "engine_error"


def test_an_error_after_the_first_audio_breaks_the_connection_off(client: OpenAI) -> None:
    with pytest.raises(openai.APIConnectionError):
        speak(client, "fail later", response_format="pcm")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": "a" * 16_385}, "input"),
        ({"voice": ""}, "voice"),
        ({"voice": 1}, "voice"),
        ({"speed": 5}, "speed"),
        ({"response_format": "ogg"}, "response_format"),
        ({"stream_format": "chunks"}, "stream_format"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"seed": -1}, "seed"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_field_that_is_wrong_is_named(server: Server, fields: dict[str, Any], param: str) -> None:
    answer = asked(server.url, "POST", "/v1/audio/speech", {"model": "mock", "input": "a", **fields})
    assert (answer.status, answer.json["error"]["param"]) == (400, param)
    assert param in answer.json["error"]["message"]


@pytest.mark.slow
def test_a_model_that_does_not_speak_says_which_kind_to_load(tiny_server: Server) -> None:
    answer = asked(tiny_server.url, "POST", "/v1/audio/speech", {"model": "builtin:tiny", "input": "a"})
    assert (answer.status, answer.json["error"]["code"], answer.json["error"]["param"]) == (501, "unsupported", "model")
    assert "builtin:tiny does not speak; load a model that does" in answer.json["error"]["message"]


def test_without_an_encoder_the_formats_are_wav_and_pcm(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmwire_http.errors import ApiError
    from lmwire_http.openai import speech

    monkeypatch.setattr(speech.importlib.util, "find_spec", lambda _: None)
    assert speech.choose_format(None) == "wav"
    assert speech.choose_format("pcm") == "pcm"
    with pytest.raises(ApiError, match=r"response_format: ask for wav or pcm: PyAV, which makes mp3, is not installed"):
        speech.choose_format("mp3")
