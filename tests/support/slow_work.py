"""The work that makes a test slow: a start of a process, or a load of a model. Such a test needs the mark `slow`.

`make check` runs the tests without that mark, so it is checked, not believed. The interpreter reports each start of a
process to an audit hook, and mlx's one way to read weights is wrapped. The sandbox and the decoder of media are exempt:
all tests of a process share them, and whichever is first to need one starts it. So are `uname`, with which Python's
`platform` finds the processor once, and the programs with which matplotlib lists a new machine's fonts once.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import mlx.core as mx

_STARTS = frozenset(("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"))
_SHARED = frozenset(("lmwire_worker.sandbox", "lmwire_worker.media_decoder", "uname", "fc-list", "system_profiler"))


class SlowWork:
    """A watch over this process, for the tests that promise to do no slow work. There is one a process.

    An audit hook cannot be removed, so the watch lasts as long as the process.
    """

    def __init__(self) -> None:
        self._found: list[str] | None = None
        self._excused: WeakSet[threading.Thread] = WeakSet()
        sys.addaudithook(self._audit)
        load = mx.load

        def watched_load(*arguments: Any, **keywords: Any) -> Any:
            self._note(f"loads {arguments[0] if arguments else 'weights'}")
            return load(*arguments, **keywords)

        mx.load = watched_load

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Yield the list of the slow work that is done while the block runs, in any thread."""
        self._found = found = []
        try:
            yield found
        finally:
            self._found = None

    def excuse_running_threads(self) -> None:
        """Ignore from now on what the other threads that run do: a slow test, or its fixture, has left them."""
        self._excused.update(each for each in threading.enumerate() if each is not threading.current_thread())

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._found is not None and event in _STARTS:
            command = arguments[1] if event == "subprocess.Popen" else event
            if _SHARED.isdisjoint(command):
                self._note(f"starts {command}")

    def _note(self, work: str) -> None:
        if self._found is not None and threading.current_thread() not in self._excused:
            self._found.append(work[:300])
