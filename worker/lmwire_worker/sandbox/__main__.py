"""The sandbox process: answers questions from stdin one at a time, within limits that it sets, until stdin ends.

A question and an answer are a line of JSON each, as `process` describes.

A timer counts processor time, and its signal ends the process. No template and no grammar can block the signal.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from lmwire_protocol.imports import uncollected

from ..process.bare_package import install_bare

if TYPE_CHECKING:
    from types import ModuleType


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host to handle
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _limit(resource.RLIMIT_CORE, 0)
    questions: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_read, args=(questions,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while True:
            question = questions.get()
            seconds, memory = question.pop("limits")
            start_timer = partial(signal.setitimer, signal.ITIMER_PROF, seconds)
            answerer = import_answerer(question.pop("subject"), start_timer)
            _limit(resource.RLIMIT_FSIZE, 0)  # after the import, whose bytecode Python keeps for the next start
            _limit(resource.RLIMIT_AS, memory)
            start_timer()
            text = json.dumps(answerer(**question), ensure_ascii=False)
            answer = memoryview(text.encode("utf-8", "surrogatepass") + b"\n")
            signal.setitimer(signal.ITIMER_PROF, 0)
            # `sys.stdout` can lose bytes of a large write if this process is stopped or frozen meanwhile.
            while answer:
                answer = answer[os.write(1, answer) :]


def _read(questions: "SimpleQueue[dict[str, Any]]") -> None:
    """Read questions from stdin. When the worker exits, stdin ends, and the process exits at once."""
    with contextlib.suppress(ValueError):  # the worker has ended within a line
        for line in sys.stdin.buffer:
            questions.put(json.loads(line))
    os._exit(0)


def import_answerer(subject: str, start_timer: Callable[[], object]) -> Callable[..., dict[str, Any]]:
    """Return the function that answers the questions of a subject. Imports what it needs.

    Args:
        subject: The `subject` of a question. The function takes its other fields.
        start_timer: Restarts the timer, for an answer in several parts.
    """
    if subject in ("vocabulary", "grammar"):
        from . import grammars

        return grammars.set_vocabulary if subject == "vocabulary" else grammars.check_grammar
    if subject in ("tokenizer", "encode", "decode", "try_tokenizer"):
        from . import tokenization

        answerers: dict[str, Callable[..., dict[str, Any]]] = {
            "tokenizer": tokenization.set_tokenizer,
            "encode": tokenization.encode,
            "decode": tokenization.decode,
            "try_tokenizer": tokenization.try_folder,
        }
        return answerers[subject]
    jinja = _jinja()
    if subject == "template":
        return jinja.find_variables
    if subject == "batch":
        return partial(jinja.render_batch, between=start_timer)
    return partial(jinja.render_opened, between=start_timer) if subject == "opened" else jinja.render


@cache
def _jinja() -> "ModuleType":
    # Its `__init__` imports loaders and the cache of bytecode, which take a third of the whole.
    install_bare("jinja2")
    with uncollected():
        from . import jinja
    return jinja


def _limit(what: int, most: int) -> None:
    with contextlib.suppress(OSError, ValueError):  # the system lacks this limit, or has a lower one
        resource.setrlimit(what, (most, resource.getrlimit(what)[1]))  # the next question may have another


if __name__ == "__main__":
    main()
