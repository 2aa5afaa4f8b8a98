"""Decoder processes: their limits, their ends, and small files that are much work."""

import fcntl
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from lmwire_protocol import Media
from lmwire_worker.media import MediaPolicy, MediaReader, MediaRef, PendingMedia
from lmwire_worker.media.decoder_process import DecoderProcess, Question, no_data
from lmwire_worker.media.media_error import MediaError
from support.http.http_server import wait_until
from support.media import hostile_media
from support.media.reading_media import SECONDS, bomb, encoded, in_base64, picture, read_image, read_sound, refusal
from support.process.process_waits import stop

INSPECTION = {"subject": "inspect", "kind": "image"}
GOOD = encoded(picture())
MIB = 2**20


class Reading:
    """A reader with one file after another, and its decoder process."""

    def __init__(self) -> None:
        self.reader = MediaReader(MediaPolicy())
        self.done = threading.Event()

    def start(self) -> PendingMedia:
        self.done.clear()
        return self.reader.read([MediaRef("a", "image", Media(data=in_base64(GOOD)))], self.done.set)

    def finish(self, pending: PendingMedia) -> int:
        assert self.done.wait(SECONDS)
        return len(pending.results())


@pytest.fixture
def reading() -> Reading:
    """A reader that has read a file, so that its process runs."""
    reading = Reading()
    assert reading.finish(reading.start()) == 1
    return reading


def process_of(reading: Reading) -> "subprocess.Popen[bytes]":
    process = reading.reader.desk.decoders[-1].process.process
    assert process is not None
    return process


def waiting_bytes(process: "subprocess.Popen[bytes]") -> int:
    """Bytes that a process has not read from its stdin."""
    return int.from_bytes(fcntl.ioctl(cast(Any, process.stdin), termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.slow
def test_a_process_serves_one_file_after_another(reading: Reading) -> None:
    before = process_of(reading)
    assert reading.finish(reading.start()) == 1
    assert process_of(reading) is before


@pytest.mark.slow
def test_work_ends_with_its_request(reading: Reading) -> None:
    process = process_of(reading)
    stop(process.pid)  # a decoder that never ends
    pending = reading.start()
    del pending
    assert process.wait(SECONDS) == -signal.SIGKILL
    assert reading.finish(reading.start()) == 1


@pytest.mark.slow
def test_a_crash_ends_its_own_request(reading: Reading) -> None:
    process = process_of(reading)
    stop(process.pid)
    pending = reading.start()
    wait_until(lambda: waiting_bytes(process) > 0, "the question is not sent")  # else another process gets it
    process.send_signal(signal.SIGSEGV)
    process.send_signal(signal.SIGCONT)
    with pytest.raises(Exception, match="its decoder crashed; save it anew"):
        reading.finish(pending)
    assert reading.finish(reading.start()) == 1


@pytest.mark.slow
def test_a_killed_process_gets_no_further_question_though_it_still_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, question = DecoderProcess(), Question(INSPECTION, SECONDS, MIB)
    size = decoder.ask(question, GOOD, no_data)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "kill", lambda _: None)  # the signal takes a moment
        decoder.kill()
    started = watch_starts(monkeypatch)
    assert decoder.ask(question, GOOD, no_data) == size
    assert len(started) == 1
    decoder.close()


def watch_starts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list to which the commands of new processes are added."""
    commands: list[Any] = []
    popen = subprocess.Popen

    def start(command: Any, **options: Any) -> Any:
        commands.append(command)
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    return commands


@pytest.mark.slow
def test_a_process_exceeds_no_limit_of_time() -> None:
    process = DecoderProcess()
    with pytest.raises(MediaError, match="takes more time or memory to decode than a file of its size may"):
        process.ask(Question(INSPECTION, 0.5, 256 * MIB), hostile_media.many_strips(), no_data)
    assert process.ask(Question(INSPECTION, 60, 0), GOOD, no_data) == {"width": 8, "height": 6}
    process.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the system does not enforce the limit")
def test_a_process_exceeds_no_limit_of_memory() -> None:
    process = DecoderProcess()
    question = Question({"subject": "decode", "kind": "image"}, 60, -400 * MIB)
    with pytest.raises(MediaError, match="takes more time or memory to decode"):
        process.ask(question, bomb(8000, 8000), no_data)
    process.close()


@pytest.mark.slow
def test_data_that_was_not_asked_for_ends_the_process() -> None:
    process = DecoderProcess()
    with pytest.raises(MediaError, match=r"takes more time or memory|its decoder crashed"):
        process.ask(Question({"subject": "decode", "kind": "image"}, 60, 0), GOOD, no_data)
    process.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("many scans", "has more than 100 scans; save it anew as an ordinary JPEG"),
        ("a line", "60,000,000 x 1 pixels; one side may be 300 times the other; cut it into parts"),
        ("profile that expands", "is not a supported image, or is corrupted"),
        ("text that expands", "is not a supported image, or is corrupted"),
        ("international text that expands", "is not a supported image, or is corrupted"),
        ("many directories", "is not a supported image, or is corrupted"),
    ],
)
def test_a_small_image_that_is_much_work_is_refused(name: str, problem: str) -> None:
    assert problem in refusal("image", Media(data=in_base64(hostile_media.images()[name]()))).message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (hostile_media.one_sample_packets, "has 20,000 packets for 20,000 samples; encode it anew"),
        (lambda: hostile_media.silent_flac(65535 * 20, declared=65535), "goes on after the 65,535 samples that"),
        (lambda: hostile_media.silent_flac(65535 * 30_000), "brings the request's media to 7,864,200,000 bytes"),
    ],
    ids=["packets of one sample", "a length that is too small", "hours of silence"],
)
def test_a_sound_that_claims_what_is_not_true_is_refused(make: Callable[[], bytes], problem: str) -> None:
    refused = refusal("sound", Media(data=in_base64(make())), MediaPolicy(max_samples=2**40, max_request_samples=2**40))
    assert problem in refused.message


def test_a_sound_without_a_length_is_counted() -> None:
    assert len(read_sound(hostile_media.silent_flac(65535 * 3, declared=0)).samples) == 65535 * 3


def test_a_long_text_beside_an_image_is_no_problem() -> None:
    assert read_image(hostile_media.text_png()).size == (8, 6)
