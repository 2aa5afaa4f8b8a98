"""The frames between rank 0 and a follower: whole or not at all, and the end of a process is noticed."""

import contextlib
import os
import queue
import threading
from collections.abc import Iterator

import pytest

from lmwire_worker.ranks import channel
from lmwire_worker.ranks.channel import FrameReader, FrameWriter, Inbox, Lost
from support.process.worker_process import SECONDS

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def test_a_frame_arrives_as_it_was_sent(pipe: Pipe) -> None:
    FrameWriter(pipe[1]).write("add", (1, b"\0\n", [2.5, None]))
    assert FrameReader(pipe[0]).read() == ("add", [1, b"\0\n", [2.5, None]])


def test_frames_of_any_size_keep_their_order(pipe: Pipe) -> None:
    sizes = [0, 1, 70_000, 3]
    writer = FrameWriter(pipe[1])
    thread = threading.Thread(target=lambda: [writer.write("step", "x" * size) for size in sizes])
    thread.start()
    reader = FrameReader(pipe[0])
    assert [len(reader.read()[1]) for _ in sizes] == sizes
    thread.join()


def test_the_end_of_the_other_process_is_noticed(pipe: Pipe) -> None:
    os.close(pipe[1])
    with pytest.raises(Lost, match="its process has ended"):
        FrameReader(pipe[0]).read()


def test_half_a_frame_is_no_frame(pipe: Pipe) -> None:
    os.write(pipe[1], b"\x05\0\0\0ab")
    os.close(pipe[1])
    with pytest.raises(Lost):
        FrameReader(pipe[0]).read()


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x01\0\0\0\xc1", b"\x01\0\0\0\x01"])
def test_what_is_no_frame_ends_the_connection(pipe: Pipe, data: bytes) -> None:
    os.write(pipe[1], data)
    with pytest.raises(Lost, match="something else than frames"):
        FrameReader(pipe[0]).read()


def test_silence_ends_the_connection(pipe: Pipe) -> None:
    with pytest.raises(Lost, match="it was silent for 0 s"):
        FrameReader(pipe[0]).read(0)


def test_a_writer_notices_that_nobody_reads(pipe: Pipe) -> None:
    os.close(pipe[0])
    with pytest.raises(Lost, match="its pipe is closed"):
        FrameWriter(pipe[1]).write("step")


def test_signs_of_life_are_no_calls(pipe: Pipe) -> None:
    beats: list[object] = []
    lost: queue.SimpleQueue[str] = queue.SimpleQueue()
    inbox = Inbox(FrameReader(pipe[0]), lost.put, beats.append)
    writer = FrameWriter(pipe[1])
    writer.write("beat", [3, 0.5])
    writer.write("step", 7)
    assert inbox.take(SECONDS) == ("step", 7)
    assert (beats, inbox.taken) == ([[3, 0.5]], 1)
    os.close(pipe[1])
    assert lost.get(timeout=SECONDS) == "its process has ended"  # its thread reads no other pipe of the same number


def test_a_process_is_silent_only_after_its_first_sign_of_life(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "SILENCE_S", 0)
    lost: queue.SimpleQueue[str] = queue.SimpleQueue()
    inbox = Inbox(FrameReader(pipe[0]), lost.put)
    writer = FrameWriter(pipe[1])
    writer.write("imported")
    assert inbox.take(SECONDS) == ("imported", None)
    assert lost.empty()
    writer.write("beat")
    assert lost.get(timeout=SECONDS) == "it was silent for 0 s"
