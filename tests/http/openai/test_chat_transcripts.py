"""A sound in a chat completion of a model that writes down speech: the answer is the transcript."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import openai
import pytest
from openai import OpenAI

from support.http.http_server import Server, served
from support.media.reading_media import encoded, in_base64, picture
from support.models.random_speech import recording, write_parakeet, write_whisper
from support.nightly import nightly_but

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=nightly_but({write_parakeet}, [write_parakeet, write_whisper]))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return request.param(tmp_path_factory.mktemp("models") / "speech")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with served(str(folder)) as server:
        yield server


@pytest.fixture
def client(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def sound(content: bytes, format: str = "wav") -> Any:
    data = base64.b64encode(content).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": format}}


def ask(client: OpenAI, folder: Path, *parts: Any, **fields: Any) -> Any:
    content: Any = [{"type": "text", "text": "Write it down."}, *parts]
    messages: Any = [{"role": "user", "content": content}]
    return client.chat.completions.create(model=str(folder), messages=messages, **fields)


def transcript(client: OpenAI, folder: Path, content: bytes, name: str = "note.wav") -> str:
    return client.audio.transcriptions.create(model=str(folder), file=(name, content)).text


def test_the_answer_is_the_transcript(client: OpenAI, folder: Path) -> None:
    content = recording(5)
    answer = ask(client, folder, sound(content), temperature=0.7)
    assert answer.choices[0].message.content.strip() == transcript(client, folder, content) != ""
    assert answer.choices[0].finish_reason == "stop"


def test_a_stream_has_the_same_text(client: OpenAI, folder: Path) -> None:
    content = recording(40)
    stream = [*ask(client, folder, sound(content), stream=True, stream_options={"include_usage": True})]
    choices = [choice for chunk in stream for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices).strip() == transcript(client, folder, content)
    assert choices[-1].finish_reason == "stop"
    assert stream[-1].usage


def test_several_sounds_have_a_line_each(client: OpenAI, folder: Path) -> None:
    one, other = recording(3), recording(5)
    answer = ask(client, folder, sound(one), sound(other)).choices[0].message.content
    lines = [transcript(client, folder, content) for content in (one, other)]
    assert [line.strip() for line in answer.split("\n")] == lines


def test_a_recording_in_m4a_is_written_down_in_both_ways(client: OpenAI, folder: Path) -> None:
    content = m4a(recording(5))
    answer = ask(client, folder, sound(content, "m4a")).choices[0].message.content
    assert answer.strip() == transcript(client, folder, content, "note.m4a") != ""


def m4a(wave: bytes) -> bytes:
    file = io.BytesIO()
    samples = np.frombuffer(wave[44:], "<i2").astype(np.float32) / 32768
    with av.open(file, "w", format="ipod") as output:
        stream = output.add_stream("aac", rate=16_000)
        assert isinstance(stream, av.AudioStream)
        stream.layout = "mono"
        for start in range(0, len(samples), 1024):
            frame = av.AudioFrame.from_ndarray(samples[None, start : start + 1024], format="fltp", layout="mono")
            frame.sample_rate = 16_000
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def test_a_damaged_sound_is_named(client: OpenAI, folder: Path) -> None:
    with pytest.raises(openai.BadRequestError, match="is a damaged sound") as refused:
        ask(client, folder, sound(b"ID3 and nothing else", "mp3"))
    assert refused.value.param == "messages[0].content[1]"


def test_an_image_is_refused(client: OpenAI, folder: Path) -> None:
    url = f"data:image/png;base64,{in_base64(encoded(picture(size=(8, 8))))}"
    with pytest.raises(openai.BadRequestError, match="takes no images"):
        ask(client, folder, sound(recording(1)), {"type": "image_url", "image_url": {"url": url}})


@pytest.mark.parametrize(("name", "value"), [("n", 2), ("response_format", {"type": "json_object"})])
def test_what_a_transcript_cannot_be_is_refused(client: OpenAI, folder: Path, name: str, value: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, folder, sound(recording(1)), **{name: value})
    assert refused.value.param == name
