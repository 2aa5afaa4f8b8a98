"""The inputs of a request are built within limits: a processor can make a large input of a small image."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lmwire_protocol import Media, RequestError
from lmwire_worker.media import MediaRef, PendingMedia
from lmwire_worker.media.noise import noise_image
from lmwire_worker.multimodal import pending_inputs
from lmwire_worker.multimodal.media_input import MediaInput
from lmwire_worker.multimodal.pending_inputs import InputThread, PendingInputs
from support.process.worker_process import SECONDS

IMAGE = noise_image()
BYTES = 100
"""Bytes of each input, in these tests."""


def build(medium: Any) -> MediaInput:
    return MediaInput(medium.digest, "*", [1], {"pixel_values": np.zeros(BYTES, np.uint8)})


def start(thread: InputThread, ready: Callable[[], None], images: int = 1, build: Any = build) -> PendingInputs:
    """Start to build inputs of images that are read already."""

    def read(done: Callable[[], None]) -> PendingMedia:
        pending = PendingMedia(images, done)
        for index in range(images):
            pending.set_result(index, IMAGE)
        return pending

    return PendingInputs(
        read, thread, build, [MediaRef(f"[{at}]", "image", Media(data="")) for at in range(images)], ready
    )


def test_the_inputs_of_a_request_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_inputs, "MAX_REQUEST_BYTES", 250)
    ready = threading.Event()
    pending = start(InputThread(), ready.set, images=3)
    assert ready.wait(SECONDS)
    with pytest.raises(RequestError, match="brings the model's inputs to 300 bytes; at most 250 are taken") as refused:
        pending.results()
    assert (refused.value.code, refused.value.field) == ("out_of_memory", "[2]")


def test_nothing_is_built_while_waiting_requests_have_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_inputs, "MAX_WAITING_BYTES", 150)
    thread, ready = InputThread(), [threading.Event() for _ in range(3)]
    first, second = start(thread, ready[0].set), start(thread, ready[1].set)
    assert ready[1].wait(SECONDS)
    third = start(thread, ready[2].set)
    assert not third.done
    del first
    assert ready[2].wait(SECONDS)
    assert (len(second.results()), len(third.results())) == (1, 1)


def test_an_input_of_a_dropped_request_is_not_built() -> None:
    thread, built, go_on, ready = InputThread(), [], threading.Event(), threading.Event()

    def slow(medium: Any) -> MediaInput:
        assert go_on.wait(SECONDS)
        return build(medium)

    def note(medium: Any) -> MediaInput:
        built.append(medium)
        return build(medium)

    first = start(thread, lambda: None, build=slow)
    dropped = start(thread, lambda: None, build=note)
    del dropped
    gc.collect()
    last = start(thread, ready.set)
    go_on.set()
    assert ready.wait(SECONDS)
    assert (built, first.done, last.done) == ([], True, True)


def test_a_processor_that_panics_ends_its_request() -> None:
    class Panic(BaseException):
        pass

    def panic(medium: Any) -> MediaInput:
        raise Panic("at src/lib.rs")

    ready = threading.Event()
    pending = start(InputThread(), ready.set, build=panic)
    assert ready.wait(SECONDS)
    with pytest.raises(RequestError, match=r"processor refuses it: Panic: at src/lib\.rs"):
        pending.results()
