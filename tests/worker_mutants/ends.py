"""Workers with faults in their exit, and workers without bridge sessions."""

import os
import signal
import threading
from typing import Any

from lmwire_worker import worker
from lmwire_worker.process.stdio import Pipes
from lmwire_worker.session import bridge, lifecycle
from lmwire_worker.session.lifecycle import LifecycleMonitor
from lmwire_worker.session.output_queue import OutputQueue
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.worker import WorkerProcess
from support.protocol.mutation import mutant, replace, wrap
from worker_mutants.changes import step_only_after


@mutant("E-1", "e-1-drain")
def serves_requests_while_it_drains() -> None:
    def quit_later(self: RequestRegistry, request: Any, *, drain: bool) -> None:
        with self._lock:
            self._quits[request.id] = request
            if not drain:
                self._drain()
                self._cancel(list(self._live.values()))

    replace(RequestRegistry, "quit", quit_later)


@mutant("E-2", "e-2-end-of-stdin")
def cancels_at_the_end_of_stdin() -> None:
    def drain_and_cancel(drain: Any, self: RequestRegistry) -> None:
        drain(self)
        self.cancel_where(lambda request: True)

    wrap(RequestRegistry, "drain", drain_and_cancel)
    step_only_after(RequestRegistry, "drain")


@mutant("E-3", "e-3-read-late")
def does_not_wait_for_a_late_reader() -> None:
    def write_all_but_the_end(write: Any, self: Pipes, data: bytes) -> None:
        if b'"id":"q"' in data:
            threading.Event().wait()  # as if the host read nothing more
        write(self, data)

    wrap(Pipes, "write", write_all_but_the_end)
    wrap(OutputQueue, "flush", lambda flush, self, seconds=None: flush(self, 0.0))


def _leave_to_the_system(number: signal.Signals) -> None:
    def take_signals(take: Any, self: LifecycleMonitor, *, interactive: bool) -> None:
        take(self, interactive=interactive)
        signal.signal(number, signal.SIG_DFL)

    wrap(LifecycleMonitor, "install_signal_handlers", take_signals)


@mutant("E-4", "e-4-sigint")
def dies_of_an_interrupt() -> None:
    _leave_to_the_system(signal.SIGINT)


@mutant("E-4", "e-4-sigterm")
def dies_of_a_termination() -> None:
    _leave_to_the_system(signal.SIGTERM)


@mutant("E-5", "e-5-host-gone")
def leaves_with_another_code_when_the_host_is_gone() -> None:
    replace(lifecycle, "EXIT_HOST_GONE", 70)


@mutant("#hello", "hello-no-common-version")
def leaves_in_peace_when_no_version_is_common() -> None:
    replace(worker, "EXIT_PROTOCOL", 0)


@mutant("#how-a-worker-ends", "f-2-blank-lines")
def leaves_with_a_code_of_its_own() -> None:
    wrap(os, "_exit", lambda leave, code: leave(3))


@mutant("G-2", "g-1-bridge")
def answers_a_bridge_in_any_order() -> None:
    replace(bridge.BridgeEventWriter, "is_serial", False)
    step_only_after(RequestRegistry, "drain")  # when it has read the `quit`


@mutant("S-1", "s-3-before-any-object")
def knows_no_bridge() -> None:
    replace(WorkerProcess, "_bridge", WorkerProcess._version_1)
