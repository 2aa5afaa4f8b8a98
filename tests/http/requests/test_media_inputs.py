"""Images and sounds by their files: a request may name those under `--media-dir`, and no others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_http.openai.messages import AudioPart, InputAudio, wire_content
from random_vision import write_vision_model
from support.http.http_server import Server, served
from support.http.raw_http import Answer, asked
from support.media.reading_media import TONES, in_base64
from support.media.shown_images import pixels

TEXT = {"type": "text", "text": "What is it?"}


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that may be read, beside a file that may not."""
    media = tmp_path_factory.mktemp("files") / "media"
    media.mkdir()
    pixels(0).save(media / "a cat.png")
    pixels(0).save(media.parent / "secret.png")
    (media / "link.png").symlink_to(media.parent / "secret.png")
    return media


@pytest.fixture(scope="module")
def server(seeing_folder: Path, media: Path) -> Iterator[Server]:
    with served(str(seeing_folder), "--media-dir", str(media), "--media-urls") as server:
        yield server


def chat(server: Server, model: Path, image: str) -> Answer:
    content = [TEXT, {"type": "image_url", "image_url": {"url": image}}]
    return _asked(server, "/v1/chat/completions", model, messages=[{"role": "user", "content": content}], max_tokens=2)


def respond(server: Server, model: Path, image: str) -> Answer:
    content = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": image}]
    asked_for = {"input": [{"role": "user", "content": content}], "max_output_tokens": 16}
    return _asked(server, "/v1/responses", model, **asked_for)


def message(server: Server, model: Path, image: str) -> Answer:
    content = [TEXT, {"type": "image", "source": {"type": "url", "url": image}}]
    return _asked(server, "/v1/messages", model, messages=[{"role": "user", "content": content}], max_tokens=2)


def _asked(server: Server, path: str, model: Path, **body: Any) -> Answer:
    return asked(server.url, "POST", path, {"model": str(model), **body})


WAYS = pytest.mark.parametrize("ask", [chat, respond, message])


def prompt_tokens(answer: Answer) -> int:
    assert answer.status == 200, answer.body
    usage = answer.json["usage"]
    return usage.get("prompt_tokens") or usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)


@pytest.mark.slow
@WAYS
def test_a_file_is_seen_as_if_it_came_with_the_request(
    server: Server, seeing_folder: Path, media: Path, ask: Any
) -> None:
    sent = f"data:image/png;base64,{in_base64((media / 'a cat.png').read_bytes())}"
    if ask is message:
        source = {"type": "base64", "media_type": "image/png", "data": sent.partition(",")[2]}
        content = [TEXT, {"type": "image", "source": source}]
        whole = _asked(
            server, "/v1/messages", seeing_folder, messages=[{"role": "user", "content": content}], max_tokens=2
        )
    else:
        whole = ask(server, seeing_folder, sent)
    for name in (str(media / "a cat.png"), f"file://{media}/a%20cat.png", f"file://localhost{media}/a%20cat.png"):
        assert prompt_tokens(ask(server, seeing_folder, name)) == prompt_tokens(whole)


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("name", ["{parent}/secret.png", "{media}/../secret.png", "file://{media}/link.png"])
def test_a_file_outside_the_directory_is_not_read(
    server: Server, seeing_folder: Path, media: Path, ask: Any, name: str
) -> None:
    refused = ask(server, seeing_folder, name.format(parent=media.parent, media=media))
    assert refused.status == 400
    assert "leads out of the directories" in refused.json["error"]["message"]


@pytest.mark.slow
@WAYS
def test_without_the_option_no_file_is_read(seeing_folder: Path, media: Path, ask: Any, seeing_server: Server) -> None:
    refused = ask(seeing_server, seeing_folder, f"file://{media}/a%20cat.png")
    assert refused.status == 400
    assert "--media-dir" in refused.json["error"]["message"]
    if ask is not message:  # its errors name no field apart
        assert refused.json["error"]["param"].endswith(("image_url.url", "image_url", "content[1]"))


@pytest.mark.slow
@WAYS
def test_an_address_is_looked_up_only_where_that_is_allowed(
    seeing_folder: Path, ask: Any, server: Server, seeing_server: Server
) -> None:
    address = "http://127.0.0.1:9/cat.png"
    assert "--media-urls" in ask(seeing_server, seeing_folder, address).json["error"]["message"]
    assert "not a public host" in ask(server, seeing_folder, address).json["error"]["message"]


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("name", ["file://elsewhere/cat.png", "cat.png", "file:cat.png", "ftp://host/cat.png"])
def test_a_url_that_names_no_local_file_is_refused_by_its_field(
    server: Server, seeing_folder: Path, ask: Any, name: str
) -> None:
    refused = ask(server, seeing_folder, name)
    assert refused.status == 400
    assert ".url: " in refused.json["error"]["message"] or ".image_url: " in refused.json["error"]["message"]


@pytest.mark.slow
def test_a_sound_is_heard_as_if_it_came_with_the_request(tmp_path: Path) -> None:
    model = write_vision_model(tmp_path / "hearing", "gemma4")

    def ask_about(server: Server, data: str) -> Answer:
        content = [TEXT, {"type": "input_audio", "input_audio": {"data": data, "format": "flac"}}]
        messages = [{"role": "user", "content": content}]
        return _asked(server, "/v1/chat/completions", model, messages=messages, max_tokens=2)

    with served(str(model), "--media-dir", str(TONES)) as server:
        whole = ask_about(server, in_base64((TONES / "tone.flac").read_bytes()))
        for name in (str(TONES / "tone.flac"), (TONES / "tone.flac").as_uri()):
            assert prompt_tokens(ask_about(server, name)) == prompt_tokens(whole)
        refused = ask_about(server, str(TONES / ".." / "test_files.py"))
        assert refused.status == 400
        assert "leads out of the directories" in refused.json["error"]["message"]


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ("file:///sounds/a%20dog.mp3", {"path": "/sounds/a dog.mp3"}),
        ("/sounds/a dog.mp3", {"path": "/sounds/a dog.mp3"}),
        ("https://example.com/dog.mp3", {"url": "https://example.com/dog.mp3"}),
        ("UklGRg==", {"data": "UklGRg=="}),
        ("//uQxAAA", {"data": "//uQxAAA"}),  # how many an MP3 begins in base64
    ],
)
def test_a_sound_in_a_chat_can_be_named_too(data: str, named: dict[str, str]) -> None:
    part = AudioPart(input_audio=InputAudio(data=data))
    assert wire_content([part], "messages[0]") == [{"type": "audio", "media": named}]
