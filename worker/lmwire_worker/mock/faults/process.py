"""The faults of the process itself: its version, its signals, its children and its deaths."""

import faulthandler
import os
import resource
import signal as signals
from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from lmwire_protocol import limits

from ..catalogue import Chosen

OTHER_VERSION: Final = 2
"""A protocol version that hosts do not speak."""

_SIGNALS: Final = {"KILL": signals.SIGKILL, "ABRT": signals.SIGABRT}


def install_process_faults(faults: Iterable[Chosen]) -> None:
    """Install the faults of the process. Called before the process has a second thread."""
    for name, parameters in faults:
        if name in PROCESS_FAULTS:
            PROCESS_FAULTS[name](**parameters)


def die(signal: str, exit: int | None) -> NoReturn:
    """End the process at once, as a crash does.

    Args:
        signal: KILL or ABRT.
        exit: Exit code, instead of the signal.
    """
    complain(b"lmwire mock: dies on purpose\n")
    if exit is not None:
        os._exit(exit)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.disable()  # it walks the stacks of running threads, which can raise another signal
    signals.raise_signal(_SIGNALS[signal])
    raise AssertionError("a signal that kills did not")


def complain(text: bytes) -> None:
    """Write to stderr, and wait until the host has read it."""
    view = memoryview(text)
    while view:
        view = view[os.write(2, view) :]


def leave_a_child(stdin: int, stdout: int, seconds: int) -> None:
    """Start a process that only keeps the pipes open.

    Args:
        stdin: Descriptor of the worker's input.
        stdout: Descriptor of its output.
        seconds: Life of the process.
    """
    held = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
    os.posix_spawnp("sleep", ["sleep", str(seconds)], os.environ, file_actions=held)


def _speak_another_version() -> None:
    limits.PROTOCOL_VERSION = OTHER_VERSION  # pyrefly: ignore[bad-assignment] : a session compares the host's versions with it


def _block_sigterm() -> None:
    # Blocked, not ignored: the worker sets handlers of its own. All threads inherit the mask.
    signals.pthread_sigmask(signals.SIG_BLOCK, (signals.SIGTERM, signals.SIGHUP))


PROCESS_FAULTS: Final[dict[str, Callable[..., None]]] = {
    "crash-start": die,
    "newer-version": _speak_another_version,
    "ignore-sigterm": _block_sigterm,
}
