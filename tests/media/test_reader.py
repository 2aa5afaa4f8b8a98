"""The media reader: its results and errors, their timing, and the work that it avoids."""

import gc
import hashlib
import threading

import pytest

from lmwire_protocol import (
    AudioPart,
    Chat,
    Embed,
    ImagePart,
    Media,
    Message,
    RequestError,
    TextPart,
    Tokenize,
    Transcribe,
)
from lmwire_worker.media import CachedMedia, MediaPolicy, MediaReader, MediaRef, find_media_refs
from lmwire_worker.media import decoders as module
from lmwire_worker.media.media_error import MediaError
from support.media.image_host import NAME
from support.media.reading_media import SECONDS, encoded, in_base64, picture, read_all, wav

IMAGE = Media(data=in_base64(encoded(picture())))
BROKEN = Media(data="")


def messages() -> list[Message]:
    return [
        Message(role="system", content="Look."),
        Message(role="user", content=[TextPart("This:"), ImagePart(IMAGE), AudioPart(Media(path="/a.wav"))]),
        Message(role="assistant", content="Well."),
        Message(role="user", content=[ImagePart(BROKEN)]),
    ]


def test_the_items_of_a_conversation_have_their_paths() -> None:
    expected = [
        MediaRef("messages[1].content[1].media", "image", IMAGE),
        MediaRef("messages[1].content[2].media", "sound", Media(path="/a.wav")),
        MediaRef("messages[3].content[0].media", "image", BROKEN),
    ]
    assert find_media_refs(Chat(messages=messages())) == find_media_refs(Tokenize(messages=messages())) == expected
    assert find_media_refs(Tokenize(prompt="text")) == []


def test_the_items_of_other_requests_have_theirs() -> None:
    assert find_media_refs(Embed(input=["text", TextPart("text"), ImagePart(IMAGE)])) == [
        MediaRef("input[2].media", "image", IMAGE)
    ]
    assert find_media_refs(Transcribe(audio=IMAGE)) == [MediaRef("audio", "sound", IMAGE)]


@pytest.mark.slow
def test_images_and_sounds_come_together() -> None:
    kinds = [
        type(medium).__name__ for medium in read_all([("image", IMAGE), ("sound", Media(data=in_base64(wav([0.5]))))])
    ]
    assert kinds == ["Image", "Sound"]


def test_a_broken_one_is_named_by_its_own_path() -> None:
    there = threading.Event()
    gathered = MediaReader(MediaPolicy()).read(find_media_refs(Chat(messages=[messages()[3]])), there.set)
    assert there.wait(SECONDS)
    assert gathered.done
    with pytest.raises(RequestError) as refused:
        gathered.results()
    assert refused.value.field == "messages[0].content[0].media.data"


@pytest.mark.slow
def test_completion_is_reported_once_when_all_media_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, delivered = threading.Semaphore(0), threading.Semaphore(0)
    monkeypatch.setattr(module, "read_source", lambda item, policy: go_on.acquire() and encoded(picture()))
    gathered = MediaReader(MediaPolicy()).read(
        [MediaRef("a", "image", IMAGE), MediaRef("b", "image", IMAGE)], delivered.release
    )
    go_on.release()
    assert not gathered.done
    go_on.release()
    assert delivered.acquire(timeout=SECONDS)
    assert gathered.done
    assert not delivered.acquire(blocking=False)


def test_a_failure_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered, never = threading.Event(), threading.Event()

    def read(item: MediaRef, policy: MediaPolicy) -> bytes:
        if item.field == "bad":
            raise MediaError("is bad")
        never.wait(SECONDS)
        return b""

    monkeypatch.setattr(module, "read_source", read)
    gathered = MediaReader(MediaPolicy()).read(
        [MediaRef("slow", "image", IMAGE), MediaRef("bad", "image", IMAGE)], delivered.set
    )
    assert delivered.wait(SECONDS)
    with pytest.raises(RequestError, match="bad\\.data: is bad"):
        gathered.results()
    never.set()


@pytest.mark.slow
def test_media_of_a_dropped_request_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    release, busy, read, delivered = threading.Event(), threading.Semaphore(0), [], threading.Event()

    def note(item: MediaRef, policy: MediaPolicy) -> bytes:
        read.append(item.field)
        busy.release()
        release.wait(SECONDS)
        return encoded(picture())

    monkeypatch.setattr(module, "read_source", note)
    reader = MediaReader(MediaPolicy())
    first = reader.read([MediaRef(f"first {i}", "image", IMAGE) for i in range(module.DECODERS)], delivered.set)
    for _ in range(module.DECODERS):
        assert busy.acquire(timeout=SECONDS)
    dropped = reader.read([MediaRef("cancelled", "image", IMAGE)], lambda: None)
    last_delivered = threading.Event()
    last = reader.read([MediaRef("last", "image", IMAGE)], last_delivered.set)
    del dropped
    gc.collect()
    release.set()
    assert delivered.wait(SECONDS) and last_delivered.wait(SECONDS)
    assert "last" in read and "cancelled" not in read
    assert first.done and last.done


def test_media_that_the_runner_has_cached_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "decode_image", lambda *_: 1 / 0)
    digest, delivered = hashlib.sha256(encoded(picture())).digest(), threading.Event()
    gathered = MediaReader(MediaPolicy()).read(
        [MediaRef("a", "image", IMAGE)],
        delivered.set,
        lambda found, kind: "known" if (found, kind) == (digest, "image") else None,
    )
    assert delivered.wait(SECONDS)
    assert gathered.results() == [CachedMedia("known", digest)]


@pytest.mark.slow
def test_a_slow_network_holds_up_no_image_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    release, delivered = threading.Event(), threading.Event()
    real = module.read_source
    monkeypatch.setattr(
        module, "read_source", lambda item, policy: release.wait(SECONDS) if item.media.url else real(item, policy)
    )
    reader = MediaReader(MediaPolicy())
    slow = reader.read([MediaRef("slow", "image", Media(url=f"http://{NAME}/")) for _ in range(100)], lambda: None)
    there = reader.read([MediaRef("there", "image", IMAGE)], delivered.set)
    assert delivered.wait(SECONDS)
    assert there.done and not slow.done
    release.set()


def test_a_bug_in_a_decoder_ends_its_request_and_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "decode_image", lambda *_: 1 / 0)
    with pytest.raises(RequestError, match="a bug in the worker: ZeroDivisionError") as refused:
        read_all([("image", IMAGE)])
    assert refused.value.code == "internal"
