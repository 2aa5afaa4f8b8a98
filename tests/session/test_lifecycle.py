"""The monitor: after a signal each step has its time, even if the process was stopped meanwhile."""

import os
from collections.abc import Iterator

import pytest

from lmwire_protocol import Generate
from lmwire_worker.session import lifecycle
from lmwire_worker.session.lifecycle import LifecycleMonitor
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.request_state import Request
from lmwire_worker.session.v1 import EVENT_WRITER
from support.runners.clock import Clock
from support.runners.registry_recorder import Recorder


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the exit codes with which the process would have ended. It lives on."""
    exits: list[int] = []
    monkeypatch.setattr(lifecycle, "exit_now", exits.append)
    return exits


@pytest.fixture
def monitor(registry: RequestRegistry) -> Iterator[LifecycleMonitor]:
    """Yield the monitor of a worker with a request that the engine does not end."""
    running = Request("a", Generate(prompt="x"), EVENT_WRITER, 10, registry.clock)
    registry.accept(running)
    registry.start(running)
    reader, writer = os.pipe()
    monitor = LifecycleMonitor(registry, writer)
    yield monitor
    for descriptor in (reader, writer):
        os.close(descriptor)


def test_a_signal_ends_the_requests_and_then_the_process(
    monitor: LifecycleMonitor, clock: Clock, exits: list[int], outbox: Recorder
) -> None:
    monitor.terminate()
    seen: list[tuple[list[str], list[int]]] = []
    for seconds in (0.9, 0.2, 0.6, 0.2):
        clock.now += seconds
        monitor.enforce()
        seen.append((outbox.terminals(), [*exits]))
    assert seen == [([], []), (["a"], []), (["a"], []), (["a"], [0])]


def test_a_worker_that_was_stopped_after_a_signal_writes_the_terminals_before_it_exits(
    monitor: LifecycleMonitor, clock: Clock, exits: list[int], outbox: Recorder
) -> None:
    monitor.terminate()
    clock.now += 8
    monitor.enforce()
    assert (outbox.terminals(), exits) == (["a"], [])
    clock.now += 1
    monitor.enforce()
    assert exits == [0]
