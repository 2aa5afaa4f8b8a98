"""Keep the worker alive while the system is short of memory: it frees caches, and admits one request at a time."""

import threading
from collections.abc import Callable
from typing import Final

from ..engine.interface import ModelRunner
from ..process.memory_pressure import MemoryPressure
from ..process.stderr_log import Log

POLL_S: Final = 1.0
"""Time between two readings of the pressure, in seconds."""
_MESSAGES: Final = {
    MemoryPressure.NORMAL: "the system has enough memory again",
    MemoryPressure.WARNING: "the system is short of memory; the worker frees its caches",
    MemoryPressure.CRITICAL: "the system is critically short of memory; the worker frees its caches, and starts a "
    "waiting request only while no other runs",
}


class PressureRelief:
    """Reads the pressure on a thread of its own. The engine's thread acts on it between two steps.

    Args:
        read: Returns the pressure. Any thread may call it.
        wake: Makes a waiting engine check its state.
        log: Receives a line when the level changes.
    """

    def __init__(self, read: Callable[[], MemoryPressure], wake: Callable[[], None], log: Log) -> None:
        self._read, self._wake, self._log = read, wake, log
        self._level = MemoryPressure.NORMAL
        self._is_due = False
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start to read the pressure, unless that has started."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="memory-pressure", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop to read the pressure, without waiting."""
        self._stopped.set()

    def is_due(self) -> bool:
        """Return whether `relieve` has something to do."""
        return self._is_due

    @property
    def pauses_admission(self) -> bool:
        """True while a request may start only if no other runs."""
        return self._level is MemoryPressure.CRITICAL

    def update(self, level: MemoryPressure) -> None:
        """Note the present level. While it is critical, each call makes a relief due.

        Args:
            level: The pressure now.
        """
        if level is self._level and level is not MemoryPressure.CRITICAL:
            return
        has_changed = level is not self._level
        self._level = level
        self._is_due = True
        self._wake()
        if has_changed:  # last: whoever reads the line may rely on it
            self._log(_MESSAGES[level])

    def relieve(self, runner: ModelRunner | None) -> bool:
        """Free the runner's caches if the pressure is high, and return whether requests may start that had to wait.

        Args:
            runner: The present runner; None without a model.
        """
        if not self._is_due:
            return False
        self._is_due = False
        if runner and self._level is not MemoryPressure.NORMAL:
            runner.release_caches()
        return True

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self.update(self._read())
            self._stopped.wait(POLL_S)
