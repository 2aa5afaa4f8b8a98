import pytest

from gated_turns import Turns
from lmwire_worker.session.request_registry import RequestRegistry
from registry_recorder import Recorder


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def outbox() -> Recorder:
    return Recorder()


@pytest.fixture
def registry(outbox: Recorder) -> RequestRegistry:
    return RequestRegistry(outbox)
