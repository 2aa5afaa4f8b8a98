"""The decoder process: answers questions about files from stdin one at a time, until stdin ends.

A question is a message and the file. `inspect` is answered with the size that the file declares, and `decode` with the
pixels or samples in frames of data, and then a message. Each question states its limits. A timer counts processor time,
and its signal ends the process: no decoder can block it.
"""

import contextlib
import gc
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

from . import pipes
from .pipes import MissingLibraryError, RefusedError

MEMORY_BYTES: Final = 4 * 2**30
"""Maximum address space of the process, in bytes. macOS does not enforce it."""
LIBRARY_BYTES: Final = 512 * 2**20
"""Address space for libraries that a question may be the first to load, in bytes."""
LARGE_BYTES: Final = 512 * 2**20
"""Memory of a question after which it is worth the time to look for what nobody uses, in bytes."""

Question = tuple[dict[str, Any], bytes]


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host to handle
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, MEMORY_BYTES),
    ):
        with contextlib.suppress(OSError, ValueError):  # the system lacks this limit, or has a lower one
            resource.setrlimit(what, (most, most))
    questions: SimpleQueue[Question] = SimpleQueue()
    threading.Thread(target=_read, args=(questions,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while True:
            question, content = questions.get()
            _limit_memory(question["memory_bytes"])
            signal.setitimer(signal.ITIMER_PROF, question["cpu_s"])
            answer = _answer(question, content)
            signal.setitimer(signal.ITIMER_PROF, 0)
            del content
            pipes.write(1, pipes.encode(answer))
            if question["memory_bytes"] > LARGE_BYTES:
                gc.collect()  # decoders may leave cycles that hold whole images
            if "exhausted" in answer:
                return  # a library that ran out of memory may be in any state


def _read(questions: "SimpleQueue[Question]") -> None:
    """Read questions from stdin. When the worker exits, stdin ends, and the process exits at once."""
    receive = partial(os.read, 0)
    with contextlib.suppress(EOFError):
        while True:
            parts: list[bytes] = []
            for _ in range(2):
                _, size = pipes.HEAD.unpack(pipes.read_exactly(receive, pipes.HEAD.size))
                parts.append(bytes(pipes.read_exactly(receive, size)))
            questions.put((json.loads(parts[0]), parts[1]))
            del parts
    os._exit(0)


def _limit_memory(bytes: int) -> None:
    """Limit the address space to what is in use now and some more, in bytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # macOS has no such file, and would not enforce the limit
        return
    most = min(used + LIBRARY_BYTES + bytes, MEMORY_BYTES)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, MEMORY_BYTES))


def _answer(question: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Return the last message about a file."""
    try:
        return _work(question, content)
    except RefusedError as error:
        return {"refused": str(error)[:1000]}
    except MissingLibraryError as error:
        return {"missing": [error.library, error.extra, error.purpose]}
    except MemoryError:
        return {"exhausted": "memory"}


def _work(question: dict[str, Any], content: bytes) -> dict[str, Any]:
    write: Callable[[bytes | memoryview], None] = partial(pipes.write_data, 1)
    is_decode = question["subject"] == "decode"
    if question["kind"] == "image":
        from . import images

        return images.decode(content, write) if is_decode else images.inspect(content)
    from . import sounds

    if is_decode:
        return sounds.decode(content, question["samples"], write)
    return sounds.inspect(content, question["samples"])


if __name__ == "__main__":
    main()
    sys.stdout = sys.stderr = None  # nothing is to be flushed
