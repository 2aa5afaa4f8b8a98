"""Transcriptions with OpenAI's own client: of a tiny model with random weights, and of the mock worker."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from support.http.http_server import MOCK, Server, served
from support.models.random_speech import recording, write_parakeet

RULES: list[dict[str, Any]] = [
    {"match": {"cmd": "transcribe", "fields": {"language": "de"}}, "reply": {"text": "Kauf Milch."}},
    {"match": {"cmd": "transcribe", "fields": {"prompt": "fail"}}, "reply": {"error": {"code": "engine_error"}}},
    {"match": {"cmd": "transcribe"}, "reply": {"text": "Buy milk. And bread --> now."}},
]
NOTE = ("note.wav", b"RIFF of no consequence")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    scenario = tmp_path_factory.mktemp("scenario") / "notes.json"
    scenario.write_text(json.dumps({"rules": RULES}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def transcribe(client: OpenAI, **options: Any) -> Any:
    return client.audio.transcriptions.create(model="mock", file=NOTE, **options)


def test_what_is_said_comes_as_text(client: OpenAI) -> None:
    transcript = transcribe(client)
    assert transcript.text == "Buy milk. And bread --> now."
    assert (transcript.usage.type, transcript.usage.seconds) == ("duration", 6)
    assert transcribe(client, response_format="text") == "Buy milk. And bread --> now.\n"
    assert transcribe(client, language="de").text == "Kauf Milch."
    assert transcribe(client, language="").text == transcript.text


def test_what_is_said_comes_with_its_times(client: OpenAI) -> None:
    transcript = transcribe(client, response_format="verbose_json", timestamp_granularities=["word", "segment"])
    assert [(each.id, each.start, each.end, each.text) for each in transcript.segments] == [
        (0, 0, 2, "Buy milk. "),
        (1, 2, 6, "And bread --> now."),
    ]
    assert [(each.word, each.start, each.end) for each in transcript.words][:3] == [
        ("Buy", 0, 1),
        ("milk.", 1, 2),
        ("And", 2, 3),
    ]
    assert (transcript.duration, transcript.text) == (6, "Buy milk. And bread --> now.")
    assert transcribe(client, response_format="verbose_json").words is None
    words = transcribe(client, response_format="verbose_json", timestamp_granularities=["word"])
    assert words.segments is None and len(words.words) == 6


def test_what_is_said_comes_as_subtitles(client: OpenAI) -> None:
    assert transcribe(client, response_format="srt") == (
        "1\n00:00:00,000 --> 00:00:02,000\nBuy milk.\n\n2\n00:00:02,000 --> 00:00:06,000\nAnd bread -> now.\n\n"
    )
    assert transcribe(client, response_format="vtt") == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nBuy milk.\n\n00:00:02.000 --> 00:00:06.000\nAnd bread -> now.\n\n"
    )


def test_what_is_said_comes_as_it_is_heard(server: Server) -> None:
    async def events() -> list[Any]:
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any") as client:
            stream = await client.audio.transcriptions.create(model="mock", file=NOTE, stream=True)
            return [event async for event in stream]

    *deltas, done = asyncio.run(events())
    assert [event.type for event in deltas] == ["transcript.text.delta"] * 2
    assert "".join(event.delta for event in deltas) == done.text == "Buy milk. And bread --> now."
    assert done.type == "transcript.text.done"


def test_a_failure_is_the_worker_s(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as failure:
        transcribe(client, prompt="fail")
    assert failure.value.code == "engine_error"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": "xml"}, "response_format"),
        ({"response_format": "srt", "stream": True}, "response_format"),
        ({"timestamp_granularities": ["word"]}, "timestamp_granularities"),
        ({"timestamp_granularities": ["line"], "response_format": "verbose_json"}, "timestamp_granularities[0]"),
        ({"temperature": 1.5}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"language": "x"}, "language"),
        ({"include": ["logprobs"]}, "include"),
    ],
    ids=str,
)
def test_a_field_that_is_wrong_is_named(client: OpenAI, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as failure:
        transcribe(client, **fields)
    assert failure.value.param == param
    assert param in failure.value.message


@pytest.mark.slow
def test_a_recording_is_heard_by_a_model(tmp_path: Path) -> None:
    folder = write_parakeet(tmp_path / "parakeet")
    with served(str(folder)) as server:
        client = OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        sound = ("tone.wav", recording(3))
        transcript: Any = client.audio.transcriptions.create(
            model=str(folder),
            file=sound,
            response_format="verbose_json",
            timestamp_granularities=["word", "segment"],
        )
        assert transcript.duration == pytest.approx(3)
        assert "".join(segment.text for segment in transcript.segments).strip() == transcript.text != ""
        assert all(0 <= word.start <= word.end <= 3.5 for word in transcript.words)
        subtitles = client.audio.transcriptions.create(model=str(folder), file=sound, response_format="srt")
        assert len(re.findall(" --> ", str(subtitles))) == len(transcript.segments)
        refused: Any = {"file": {"file": ("note.wav", b"no sound")}, "language": {"file": sound, "language": "en"}}
        for param, fields in refused.items():
            with pytest.raises(openai.BadRequestError) as failure:
                client.audio.transcriptions.create(model=str(folder), **fields)
            assert failure.value.param == param


@pytest.mark.slow
def test_a_model_that_transcribes_nothing_says_which_kind_does(tiny_server: Server) -> None:
    client = OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)
    with pytest.raises(openai.InternalServerError) as refused:
        client.audio.transcriptions.create(model="builtin:tiny", file=b"RIFF")
    assert (refused.value.status_code, refused.value.code, refused.value.param) == (501, "unsupported", "model")
    assert "load a speech model" in refused.value.message
