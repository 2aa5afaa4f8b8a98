import pytest

from lmwire_worker.session.request_registry import RequestRegistry
from support.runners.clock import Clock
from support.runners.registry_recorder import Recorder


@pytest.fixture
def outbox() -> Recorder:
    return Recorder()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(outbox: Recorder, clock: Clock) -> RequestRegistry:
    return RequestRegistry(outbox, clock)
