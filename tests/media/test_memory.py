"""The memory of decoded media: taken before a decoder starts, and free again whatever becomes of the request."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import PIL.Image
import pytest

from lmwire_protocol import Media, RequestError
from lmwire_worker.media import MediaPolicy, MediaReader, MediaRef, PendingMedia, Sound, decoders
from lmwire_worker.media.decoder_process import Declared, Question
from lmwire_worker.media.media_error import MediaError
from support.media.reading_media import SECONDS, encoded, in_base64, picture, read_all, wav

SIZE = 300
"""Bytes of each medium, in these tests."""


class Requests:
    """Requests to a reader with memory for two media, whose decoders do what the test says."""

    def __init__(self, **limits: Any) -> None:
        limits = {"memory_bytes": 800, **limits}
        self.reader = MediaReader(MediaPolicy(**limits))
        self.decoded: list[str] = []
        self.ended = threading.Semaphore(0)
        """Counts the requests whose media are read."""

    def inspect(self, process: Any, content: bytes, policy: MediaPolicy, is_dropped: Any) -> Declared:
        return Declared("image", 1, SIZE, 1, Question({}, 1, 1))

    def decode(self, process: Any, content: bytes, declared: Declared, is_dropped: Any) -> PIL.Image.Image:
        self.decoded.append(content.decode())
        if content == b"damaged":
            raise MediaError("is damaged")
        return PIL.Image.new("RGB", (1, 1))

    def read(self, *names: str) -> PendingMedia:
        refs = [MediaRef("a", "image", Media(data=in_base64(name.encode()))) for name in names]
        return self.reader.read(refs, self.ended.release)

    def results(self, pending: PendingMedia) -> list[Any]:
        """Wait for a request's media, and return them."""
        while not pending.done:
            assert self.ended.acquire(timeout=SECONDS)
        return pending.results()

    def settle(self) -> None:
        """Wait until the reader has read all messages that were sent to it."""
        done = threading.Event()
        desk = self.reader.desk
        for _ in range(2):  # one message may cause another
            done.clear()
            desk.inbox.put((decoders.Work([], lambda *_: None, PendingMedia(0, lambda: None)), lambda _: done.set()))
            assert done.wait(SECONDS)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    requests = Requests()
    monkeypatch.setattr(decoders, "inspect_image", requests.inspect)
    monkeypatch.setattr(decoders, "decode_image", requests.decode)
    yield requests
    requests.reader.close()


def test_a_request_waits_until_another_has_used_its_media(requests: Requests) -> None:
    first = requests.read("a", "b")
    media = requests.results(first)
    assert requests.reader.memory == 2 * SIZE
    second = requests.read("c")
    requests.settle()
    assert not second.done and "c" not in requests.decoded
    del first, media
    assert len(requests.results(second)) == 1


def test_the_media_of_a_request_are_decoded_once_there_is_memory_for_all(requests: Requests) -> None:
    first = requests.read("a")
    media = requests.results(first)
    others = [requests.read("b", "c"), requests.read("d", "e")]
    requests.settle()
    assert requests.decoded == ["a"], "two requests that had one each would wait for each other"
    del first, media
    while others:
        assert requests.ended.acquire(timeout=SECONDS)
        others = [other for other in others if not other.done]


def test_what_alone_exceeds_the_memory_is_refused_with_both_numbers(requests: Requests) -> None:
    with pytest.raises(
        RequestError, match="to 900 bytes of memory; at most 700 are taken: make them smaller"
    ) as refused:
        requests.results(requests.read("a", "b", "c"))
    assert (refused.value.code, refused.value.field) == ("invalid_request", "a.data")
    assert not requests.decoded


Ending = Callable[[Requests], None]


def _dropped(requests: Requests) -> None:
    requests.read("a", "b")


def _used(requests: Requests) -> None:
    requests.results(requests.read("a", "b"))


def _failed(requests: Requests) -> None:
    with pytest.raises(RequestError):
        requests.results(requests.read("a", "damaged"))


def _dropped_while_it_waits(requests: Requests) -> None:
    first = requests.read("a", "b")
    media = requests.results(first)
    requests.read("c", "d")
    requests.settle()
    del first, media


@pytest.mark.parametrize("ending", [_dropped, _used, _failed, _dropped_while_it_waits])
def test_a_requests_memory_is_free_after_its_end(requests: Requests, ending: Ending) -> None:
    ending(requests)
    last = requests.read("x", "y")  # it needs all of it
    assert len(requests.results(last)) == 2
    del last
    requests.settle()
    assert requests.reader.memory == 0


def test_a_sound_that_is_resampled_has_memory_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def inspect(process: Any, content: bytes, policy: MediaPolicy, is_dropped: Any) -> Declared:
        return Declared("sound", 100, 400, 1, Question({}, 1, 1), 8000)

    def decode(*_: Any) -> tuple[np.ndarray, int]:
        return np.zeros(100, np.float32), 8000

    monkeypatch.setattr(decoders, "inspect_sound", inspect)
    monkeypatch.setattr(decoders, "decode_sound", decode)
    event = threading.Event()
    reader = MediaReader(MediaPolicy(), resampled_rate=16_000)
    pending = reader.read([MediaRef("a", "sound", Media(data="AAAA"))], event.set)
    assert event.wait(SECONDS)
    (sound,) = pending.results()
    assert isinstance(sound, Sound)
    assert reader.memory == 400 + 800
    reader.close()


@pytest.mark.slow
def test_the_sounds_of_a_request_have_a_limit_together() -> None:
    media = Media(data=in_base64(wav([0.5] * 100)))
    policy = MediaPolicy(max_request_samples=250)
    assert len(read_all([("sound", media)] * 2, policy)) == 2
    with pytest.raises(RequestError, match="brings the request's sounds to 300 samples; at most 250 are taken"):
        read_all([("sound", media)] * 3, policy)


@pytest.mark.slow
def test_the_files_of_a_request_from_disk_have_a_limit_together(tmp_path: Any) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(encoded(picture()))
    size = path.stat().st_size
    policy = MediaPolicy(directories=(tmp_path,), max_request_bytes=2 * size)
    media = Media(path=str(path))
    assert len(read_all([("image", media)] * 2, policy)) == 2
    with pytest.raises(RequestError, match=rf"brings the request's files to {3 * size} bytes; at most {2 * size} are"):
        read_all([("image", media)] * 3, policy)
