"""The worker's side of a decoder process: starts it, asks it, and ends it. See `lmwire_worker.media_decoder`."""

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol.extras import not_installed

from ..media_decoder import pipes
from .media_error import MediaError
from .media_refs import MediaKind

EXIT_TIMEOUT_S: Final = 30.0
"""Maximum time for a process that has closed its pipe to exit, in seconds."""
RESPONSE_TIMEOUT_S: Final = 300.0
"""Maximum time to wait for a byte of an answer, in seconds on the clock. The limit of processor time comes first."""
_PIPE_BYTES: Final = 2**20

Buffer = Callable[[int], memoryview]
"""Returns where the next bytes of the pixels or samples are to be written, in full; called with their number."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a file, with its limits."""

    fields: dict[str, Any]
    """The `subject`, the `kind`, and for sounds the maximum number of `samples`."""
    cpu_s: float
    """Maximum processor time, in seconds."""
    memory_bytes: int
    """Memory that the decoder may take beyond its libraries', in bytes. macOS does not enforce it."""


class DecoderProcess:
    """One decoder process, which starts at the first question. One thread asks; any thread may kill it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._killed: subprocess.Popen[bytes] | None = None
        """The process that was killed last. It may live for a moment, and must get no further question."""

    def ask(
        self, question: Question, content: bytes, buffer: Buffer, is_dropped: Callable[[], bool] = lambda: False
    ) -> dict[str, Any]:
        """Return the last message of the process about a file.

        Args:
            question: The question.
            content: The file.
            buffer: Receives the pixels or samples. An error of it ends the process.
            is_dropped: Returns whether nobody waits for the answer: a process that only starts cannot be killed yet.

        Raises:
            MediaError: The file is refused, or its decoder crashed or exceeded a limit.
        """
        process = self._running_process()
        try:
            if is_dropped():
                raise EOFError
            limits = {"cpu_s": question.cpu_s, "memory_bytes": question.memory_bytes}
            _send(process, pipes.encode(question.fields | limits))
            _send(process, pipes.HEAD.pack(pipes.DATA, len(content)))
            _send(process, content)
            answer = _receive(process, buffer)
        except (OSError, EOFError, ValueError):
            raise _failure(self._end()) from None
        except BaseException:
            self.kill()
            self._end()
            raise
        if "exhausted" in answer:
            self._end()
            raise _too_much()
        if "missing" in answer:
            library, extra, purpose = answer["missing"]
            raise MediaError(not_installed(library, extra, purpose=purpose), "unsupported")
        if "refused" in answer:
            raise MediaError(str(answer["refused"]))
        return answer

    def kill(self) -> None:
        """End the process. The question in progress fails."""
        if (process := self.process) is not None:
            self._killed = process
            process.kill()

    def close(self) -> None:
        """End the process between two questions."""
        if self.process is not None:
            self.kill()
            self._end()

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self.process is not None and (self.process is self._killed or self.process.poll() is not None):
            self._end()
        if self.process is None:
            self.process = _start()
        return self.process

    def _end(self) -> int:
        """Wait for the end of the process, which closed its pipe or was killed. Return its exit status."""
        process, self.process = self.process, None
        assert process and process.stdin and process.stdout
        process.stdin.close()
        try:
            # One that closed its pipe exits with a status that has the reason, if the machine gives it the time.
            status = process.wait(EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        process.stdout.close()
        return status


def _too_much() -> MediaError:
    return MediaError(
        "takes more time or memory to decode than a file of its size may; save it anew, or send it in parts"
    )


def _failure(status: int) -> MediaError:
    if -status in (signal.SIGPROF, signal.SIGKILL, signal.SIGTERM):
        return _too_much()
    return MediaError("is damaged: its decoder crashed; save it anew")


def _start() -> subprocess.Popen[bytes]:
    # The process must not inherit the worker's stderr: the host would wait for that pipe to close.
    command = [sys.executable, "-P", "-m", str(pipes.__package__)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # threads take address space
    process = subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdin and process.stdout
    os.set_blocking(process.stdin.fileno(), False)  # a process that reads nothing must not block the thread for ever
    if size := getattr(fcntl, "F_SETPIPE_SZ", None):
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # the user's pipes have a limit together
                fcntl.fcntl(pipe, size, _PIPE_BYTES)
    return process


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin
    remaining = memoryview(data)
    while remaining:
        _wait(process.stdin.fileno(), select.POLLOUT)
        with contextlib.suppress(BlockingIOError):
            remaining = remaining[os.write(process.stdin.fileno(), remaining) :]


def _receive(process: subprocess.Popen[bytes], buffer: Buffer) -> dict[str, Any]:
    """Receive data until a message comes, and return this."""
    head = bytearray(pipes.HEAD.size)
    while True:
        _fill(process, memoryview(head))
        kind, size = pipes.HEAD.unpack(head)
        if kind == pipes.DATA:
            _fill(process, buffer(size))
            continue
        if size > pipes.MAX_MESSAGE_BYTES:
            raise ValueError("a message that is too long")
        message = bytearray(size)
        _fill(process, memoryview(message))
        answer = json.loads(message)
        if not isinstance(answer, dict):
            raise ValueError("a message of another kind")
        return answer


def _fill(process: subprocess.Popen[bytes], target: memoryview) -> None:
    assert process.stdout
    while target:
        _wait(process.stdout.fileno(), select.POLLIN)
        count = process.stdout.readinto(target)  # pyright: ignore[reportAttributeAccessIssue] : it has no buffer
        if not count:
            raise EOFError
        target = target[count:]


def _wait(descriptor: int, event: int) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(RESPONSE_TIMEOUT_S * 1000):
        raise EOFError


# Declarations of files, and the limits of decoding that follow from them.

CPU_S: Final = 10.0
"""Processor time that a decoder process may take for any file, in seconds, its start included."""
INSPECTION_BYTES: Final = 256 * 2**20
"""Memory that a decoder process may take for any file, in bytes: some copies of it, and tables."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A file's declaration of its size."""

    kind: MediaKind
    units: int
    """Pixels or samples, which have limits for each request."""
    result_bytes: int
    """Memory of the worker that it takes once it is decoded, in bytes."""
    work_bytes: int
    """Memory of the process that decodes it, in bytes."""
    question: Question
    """The question that decodes it."""
    rate: int = 0
    """Samples per second, of a sound."""


def no_data(size: int) -> memoryview:
    """Refuse pixels and samples in the answer to an inspection; see `decoder_process.Buffer`."""
    raise ValueError("an inspection has no data")
