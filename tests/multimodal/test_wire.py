"""Images and sounds over a real worker's pipes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmwire import MessageDict, RequestFailed, Worker, audio_part, image_part
from random_vision import write_vision_model
from support.media.reading_media import encoded, picture, wav
from support.media.shown_images import image
from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.slow

DATA = image(1).media.data
SHOWN = {"type": "image", "media": {"data": DATA}}


def chat(id: str, *messages: Event) -> Event:
    return {"id": id, "cmd": "chat", "messages": [*messages], "max_tokens": 6, "ignore_eos": True}


def user(*content: Event | str) -> Event:
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {"role": "user", "content": parts}


@pytest.mark.nightly  # test_cached_images.py shows it of the engine
def test_a_conversation_about_an_image_goes_on_from_what_is_cached(tmp_path: Path) -> None:
    with WorkerProcess() as worker:
        loaded = worker.load(write_vision_model(tmp_path / "model"))
        assert "images" in loaded["capabilities"]
        first = worker.call(chat("1", user("What is on ", SHOWN, "?")))
        assert first["usage"]["cached_tokens"] == 0
        data_uri = {"data": f"data:image/png;base64,{DATA}"}
        again = worker.call(chat("2", user("What is on ", {"type": "image", "media": data_uri}, "?")))
        assert again["usage"]["cached_tokens"] == again["usage"]["prompt_tokens"] - 1
        assert worker.text("1") == worker.text("2") != ""
        tokens = worker.call({"id": "3", "cmd": "tokenize", "messages": [user("What is on ", SHOWN, "?")]})
        assert tokens["count"] == first["usage"]["prompt_tokens"]


def test_a_cancelled_request_with_an_image_does_not_affect_others(tmp_path: Path) -> None:
    question = user("What is on ", SHOWN, "?")
    long = {"max_tokens": 1_000_000}  # it must not end by itself
    with WorkerProcess() as worker:
        worker.load(write_vision_model(tmp_path / "model", max_position_embeddings=2_000_000))
        worker.call(chat("alone", question))
        worker.send(chat("endless", user(SHOWN, "Go on.")) | long | {"n": 2})
        worker.first_token("endless")
        worker.send(
            chat("at once", user("Never ", SHOWN)) | long,
            {"id": "1", "cmd": "cancel", "target": "at once"},
            chat("beside", question) | {"cache": "off", "logprobs": True},
        )
        worker.terminal("beside")
        assert worker.terminal("at once")["finish_reason"] == "cancelled"
        cancelled = worker.call({"id": "2", "cmd": "cancel", "target": "endless"})
        assert cancelled["matched"] == 1
        end = worker.terminal("endless")
        assert [choice["finish_reason"] for choice in end["choices"]] == ["cancelled", "cancelled"]
        assert worker.token_ids("beside") == worker.token_ids("alone")
        assert sum(len(event["logprobs"]) for event in worker.of("beside") if event["event"] == "token") == 6
        assert len([event for event in worker.of("endless") if event["event"] == "token"]) > 2, "it came in pieces"
        worker.check_terminals(["alone", "endless", "at once", "beside", "1", "2"])


def test_a_program_sends_sounds_with_the_client(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (2, 12_000)).clip(-1, 1)
    one, other = (wav(samples) for samples in noise)
    (tmp_path / "one.wav").write_bytes(one)
    model = write_vision_model(tmp_path / "model", "gemma4")
    with Worker() as worker:
        assert "sounds" in worker.load(str(model)).capabilities

        def ask(*parts: Any, **options: Any) -> tuple[list[int], int]:
            content: list[Any] = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
            messages: list[MessageDict] = [{"role": "user", "content": content}]
            stream = worker.chat(messages, max_tokens=8, ignore_eos=True, **options)
            return [token for delta in stream for token in delta.token_ids], stream.result.usage.cached_tokens

        first, cached = ask("What is said in ", audio_part(tmp_path / "one.wav"), "?", seed=1, temperature=2)
        assert cached == 0
        again, cached = ask("What is said in ", audio_part(one), "?", seed=1, temperature=2)
        assert again == first
        assert cached > 16
        about_other, _ = ask("What is said in ", audio_part(other), "?", seed=1, temperature=2)
        assert about_other != first
        assert ask(image_part(encoded(picture())), " or ", audio_part(one), "?", strict_media=True)[0]
        with pytest.raises(RequestFailed, match=r"messages\[0\].content\[0\].media.data: is a damaged sound"):
            ask(audio_part(one[:20]), "?")
