"""A sandbox: answers questions on stdin one by one, within limits that it sets itself, until stdin ends.

It counts processor time with a timer whose signal ends the process: no code of a template or a grammar's compiler can
hold that up.
"""

import contextlib
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from . import frames


def main() -> None:
    """Serve until stdin ends."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host to handle
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    start_timer = partial(signal.setitimer, signal.ITIMER_PROF, seconds)
    questions: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_read, args=(questions,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while True:
            question = questions.get()
            start_timer()
            answer = frames.encode(_answer(question, start_timer))
            signal.setitimer(signal.ITIMER_PROF, 0)
            sys.stdout.buffer.write(answer)
            sys.stdout.buffer.flush()


def _read(questions: "SimpleQueue[dict[str, Any]]") -> None:
    """Read what comes on stdin. Its end, which is the worker's, ends the process whatever it is at."""
    with contextlib.suppress(EOFError):
        while True:
            questions.put(frames.read(sys.stdin.buffer.read))
    os._exit(0)


def _answer(question: dict[str, Any], start_timer: Callable[[], object]) -> dict[str, Any]:
    """Return the answer of whoever knows the question's subject.

    Args:
        question: The subject, and what it is asked.
        start_timer: Gives the rest of the answer its own processor time.
    """
    subject = question.pop("subject")
    if subject == "vocabulary":
        from . import grammars

        return grammars.take_vocabulary(**question)
    if subject == "grammar":
        from . import grammars

        return grammars.try_out(**question)
    from . import jinja

    if subject == "template":
        return jinja.inspect(**question)
    return jinja.render_opened(**question, between=start_timer) if subject == "opened" else jinja.render(**question)


def _limit(what: int, most: int) -> None:
    with contextlib.suppress(OSError, ValueError):  # a system that knows no such limit, or has a lower one
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
