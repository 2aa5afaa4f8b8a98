"""Frames on the two pipes between rank 0 and a follower: a length of four bytes, and a list in MessagePack.

A follower's stdin and stdout are these pipes, so that a follower on another machine needs nothing but ssh. The end of
a pipe is the end of the other process, which no process that is killed can forget to report.
"""

import os
import queue
import select
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

BEAT_S: Final = 0.5
"""Time between two signs of life, in seconds."""
SILENCE_S: Final = 4.0
"""Time without a sign of life after which a process counts as lost, in seconds."""
MAX_FRAME_BYTES: Final = 256 * 2**20

_LENGTH: Final = struct.Struct("<I")


class Lost(Exception):
    """Raised when the other end is gone, or silent."""


class FrameWriter:
    """Writes frames from any thread.

    Args:
        descriptor: The pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._encoder = msgspec.msgpack.Encoder()

    def write(self, kind: str, value: Any = None) -> int:
        """Write one frame whole, and return its size in bytes.

        Raises:
            Lost: The other end is closed.
        """
        body = self._encoder.encode((kind, value))
        data = memoryview(_LENGTH.pack(len(body)) + body)
        size = len(data)
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                raise Lost(f"its pipe is closed ({error.strerror})") from None
        return size


class FrameReader:
    """Reads frames.

    Args:
        descriptor: The pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._decoder = msgspec.msgpack.Decoder(tuple[str, Any])

    def read(self, silence_s: float | None = None) -> tuple[str, Any]:
        """Return the next frame.

        Args:
            silence_s: Longest wait for any byte, in seconds; None for no limit.

        Raises:
            Lost: The other end is closed or silent, or does not send frames.
        """
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size, silence_s))
        if length > MAX_FRAME_BYTES:
            raise Lost("it sends something else than frames")
        try:
            return self._decoder.decode(self._take(length, silence_s))
        except msgspec.DecodeError as error:
            raise Lost(f"it sends something else than frames ({error})") from None

    def _take(self, count: int, silence_s: float | None) -> bytes:
        while len(self._buffer) < count:
            if silence_s is not None and not select.select([self._descriptor], [], [], silence_s)[0]:
                raise Lost(f"it was silent for {silence_s:g} s")
            try:
                data = os.read(self._descriptor, 65536)
            except OSError as error:
                raise Lost(f"its pipe is closed ({error.strerror})") from None
            if not data:
                raise Lost("its process has ended")
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


class Inbox:
    """Frames that a thread reads, so that the end of the other process is noticed while this one computes.

    Args:
        reader: The pipe.
        on_lost: Called from the thread, with the reason, when the other end is gone.
        on_beat: Called from the thread for each sign of life, with its value.
    """

    def __init__(
        self, reader: FrameReader, on_lost: Callable[[str], None], on_beat: Callable[[Any], None] = lambda value: None
    ) -> None:
        self._reader = reader
        self._on_lost = on_lost
        self._on_beat = on_beat
        self._frames: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._waiting_since: float | None = None
        self.taken = 0
        """Number of frames that were taken, without the signs of life."""
        self._beating = False
        threading.Thread(target=self._run, name="ranks-inbox", daemon=True).start()

    @property
    def waited_s(self) -> float:
        """Seconds that the next `take` has waited; 0 if none waits."""
        since = self._waiting_since
        return time.monotonic() - since if since is not None else 0.0

    def take(self, timeout_s: float | None = None) -> tuple[str, Any]:
        """Return the next frame except signs of life.

        Args:
            timeout_s: Longest wait in seconds; None for no limit.

        Raises:
            queue.Empty: After that time.
        """
        self._waiting_since = time.monotonic()
        try:
            frame = self._frames.get(timeout=timeout_s)
        finally:
            self._waiting_since = None
        self.taken += 1
        return frame

    def _run(self) -> None:
        try:
            while True:
                # Imports and the connection of the ranks may silence a process. Its signs of life begin after them.
                kind, value = self._reader.read(SILENCE_S if self._beating else None)
                if kind == "beat":
                    self._beating = True
                    self._on_beat(value)
                else:
                    self._frames.put((kind, value))
        except Lost as lost:
            self._on_lost(str(lost))


def beat(writer: FrameWriter, value: Callable[[], Any] = lambda: None) -> None:
    """Send signs of life for ever, from a thread of its own.

    Args:
        writer: The pipe.
        value: Returns what a sign of life says.
    """

    def run() -> None:
        try:
            while True:
                writer.write("beat", value())
                time.sleep(BEAT_S)
        except Lost:
            pass  # the thread that reads reports it

    threading.Thread(target=run, name="ranks-beat", daemon=True).start()
