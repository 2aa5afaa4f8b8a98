"""Images over a real worker's pipes."""

from pathlib import Path

from random_vision import write_vision_model
from shown_images import image
from worker_process import Event, WorkerProcess

DATA = image(1).media.data
SHOWN = {"type": "image", "media": {"data": DATA}}


def chat(id: str, *messages: Event) -> Event:
    return {"id": id, "cmd": "chat", "messages": [*messages], "max_tokens": 6, "ignore_eos": True}


def user(*content: Event | str) -> Event:
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {"role": "user", "content": parts}


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
