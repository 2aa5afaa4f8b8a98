"""A real worker with a model that sees: whatever is wrong with an image, its own request ends, and nothing else."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import PIL.Image
import pytest

from random_vision import write_vision_model
from support.media.reading_media import animated, bomb, encoded, in_base64, picture, wav
from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.slow

Media = dict[str, str]

GOOD = {"data": in_base64(encoded(PIL.Image.effect_noise((60, 60), 80).convert("RGB")))}


class Sighted:
    """A worker with a model that sees, and a directory that it may read."""

    def __init__(self, worker: WorkerProcess, directory: Path) -> None:
        self.worker = worker
        self.directory = directory
        self._ids = 0

    def ask(self, *images: Media) -> Event:
        """Return the terminal of a chat about images."""
        self._ids += 1
        return self.worker.call(chat(str(self._ids), images))

    def send(self, images: dict[str, Media]) -> None:
        """Send one chat about each image, by the ids given."""
        self.worker.send(*(chat(id, [image]) for id, image in images.items()))


def chat(id: str, images: Sequence[Media]) -> Event:
    parts = [{"type": "image", "media": image} for image in images]
    messages = [{"role": "user", "content": [*parts, {"type": "text", "text": "What is it?"}]}]
    return {"id": id, "cmd": "chat", "messages": messages, "max_tokens": 4, "ignore_eos": True}


@pytest.fixture(scope="module")
def sighted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sighted]:
    root = tmp_path_factory.mktemp("media")
    directory = root / "allowed"
    directory.mkdir()
    (root / "beside.png").write_bytes(encoded(picture()))
    (directory / "good.png").write_bytes(encoded(picture(size=(60, 60))))
    (directory / "out.png").symlink_to(root / "beside.png")
    (directory / "empty.png").touch()
    (directory / "folder").mkdir()
    os.mkfifo(directory / "pipe")
    with WorkerProcess("--media-dir", str(directory), "--media-dir", "/dev", "--media-urls") as worker:
        worker.load(write_vision_model(root / "model"))
        yield Sighted(worker, directory)


def data(content: bytes) -> Media:
    return {"data": in_base64(content)}


BAD = {
    "truncated png": data(encoded(picture(size=(200, 200)))[:-60]),
    "truncated jpeg": data(encoded(picture(size=(200, 200)), "JPEG")[:-60]),
    "100 megapixels": data(bomb(10_000, 10_000)),
    "10 gigapixels": data(bomb(100_000, 100_000)),
    "animated gif": data(animated("GIF")),
    "animated png": data(animated("PNG")),
    "32 bits": data(encoded(picture("F", color=0.5), "TIFF")),
    "svg": data(b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
    "eps": data(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n"),
    "text": data(b"text"),
    "a sound": data(wav([0.5])),
    "wrong type": {"data": f"data:text/html;base64,{in_base64(encoded(picture()))}"},
    "empty": {"data": ""},
    "no base64": {"data": "no base64!"},
    "a data uri without base64": {"data": "data:image/png,red"},
    "a relative path": {"path": "good.png"},
    "a path outside": {"path": "/etc/passwd"},
    "a path that leads out": {"path": "DIRECTORY/../beside.png"},
    "a link that leads out": {"path": "DIRECTORY/out.png"},
    "nothing there": {"path": "DIRECTORY/none.png"},
    "an empty file": {"path": "DIRECTORY/empty.png"},
    "a directory": {"path": "DIRECTORY/folder"},
    "a pipe": {"path": "DIRECTORY/pipe"},
    "a device": {"path": "/dev/zero"},
    "a null in a path": {"path": "DIRECTORY/a\0.png"},
    "loopback": {"url": "http://127.0.0.1/a.png"},
    "loopback by name": {"url": "http://localhost/a.png"},
    "loopback by number": {"url": "http://2130706433/a.png"},
    "loopback in 6": {"url": "http://[::1]/a.png"},
    "private": {"url": "https://10.0.0.1/a.png"},
    "link-local": {"url": "http://169.254.169.254/latest/meta-data/"},
    "no http": {"url": "file:///etc/passwd"},
    "no address": {"url": "http://[::1/"},
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_image_ends_its_own_request_with_its_path(sighted: Sighted, name: str) -> None:
    ((member, value),) = BAD[name].items()
    error = sighted.ask(GOOD, {member: value.replace("DIRECTORY", str(sighted.directory))})
    assert (error["event"], error["code"], error["retryable"]) == ("error", "invalid_request", False)
    assert error["field"] == f"messages[0].content[1].media.{member}"
    assert error["error"].startswith(f"messages[0].content[1].media.{member}: ")


def test_an_address_is_resolved_where_that_is_allowed(sighted: Sighted) -> None:
    assert "is not a public host" in sighted.ask({"url": "http://127.0.0.1:9/cat.png"})["error"]


def test_after_all_bad_images_the_worker_answers_as_before(sighted: Sighted) -> None:
    for bad in BAD.values():
        sighted.ask(bad)
    assert sighted.ask(GOOD)["finish_reason"] == "length"
    assert sighted.ask({"path": f"{sighted.directory}/good.png"}, GOOD)["finish_reason"] == "length"


def test_odd_images_are_images(sighted: Sighted) -> None:
    odd = {
        "1 x 1": encoded(picture(size=(1, 1))),
        "cmyk": encoded(picture("CMYK", (60, 60), (0, 255, 255, 0)), "JPEG"),
        "16 bits": encoded(picture("I;16", (60, 60), 0x8000)),
        "transparent": encoded(picture("RGBA", (60, 60), (0, 0, 0, 0))),
        "black and white": encoded(picture("1", (60, 60), 1)),
    }
    ends = {name: sighted.ask(data(content)).get("finish_reason", "error") for name, content in odd.items()}
    assert ends == dict.fromkeys(odd, "length")


def test_a_bad_image_does_not_disturb_other_requests(sighted: Sighted) -> None:
    media = {"good": GOOD, "bomb": BAD["100 megapixels"], "good too": GOOD, "loopback": BAD["loopback"]}
    sighted.send(media)
    ends = {id: sighted.worker.terminal(id).get("finish_reason", "error") for id in media}
    assert ends == {"good": "length", "bomb": "error", "good too": "length", "loopback": "error"}
    assert sighted.worker.token_ids("good") == sighted.worker.token_ids("good too")


UNREAD = {
    "a path": {"path": "/etc/passwd"},
    "an address": {"url": "http://127.0.0.1:9/image.png"},
    "no base64": {"data": "no base64!"},
}


@pytest.fixture(scope="module", params=["mock", "engine"])
def sightless(request: pytest.FixtureRequest) -> Iterator[WorkerProcess]:
    """A worker that may read nothing, with a model that takes text alone."""
    with WorkerProcess(*(["--mock"] if request.param == "mock" else [])) as worker:
        worker.load("mock" if request.param == "mock" else "builtin:tiny")
        yield worker


@pytest.mark.parametrize("kind", ["image", "audio"])
@pytest.mark.parametrize("media", UNREAD)
def test_a_text_model_gets_a_note_for_media_that_is_not_read(sightless: WorkerProcess, media: str, kind: str) -> None:
    messages = [{"role": "user", "content": [{"type": kind, "media": UNREAD[media]}, {"type": "text", "text": "Hi"}]}]
    id = f"{kind}: {media}"
    counted = sightless.call({"id": id, "cmd": "tokenize", "messages": messages})
    assert counted["event"] == "done"
    assert f"[1 {'image' if kind == 'image' else 'sound'} was attached]" in sightless.text(id)
    done = sightless.call({"id": f"chat, {id}", "cmd": "chat", "messages": messages, "max_tokens": 1})
    assert (done["event"], done["usage"]["prompt_tokens"]) == ("done", counted["count"])
    refused = sightless.call(
        {"id": f"strict, {id}", "cmd": "chat", "messages": messages, "max_tokens": 1, "strict_media": True}
    )
    assert (refused["code"], refused["field"]) == ("unsupported", "messages[0].content[0]")
