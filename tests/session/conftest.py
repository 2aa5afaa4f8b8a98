import pytest

from lmwire_worker.session.request_registry import RequestRegistry
from support.runners.registry_recorder import Recorder


@pytest.fixture
def outbox() -> Recorder:
    return Recorder()


@pytest.fixture
def registry(outbox: Recorder) -> RequestRegistry:
    return RequestRegistry(outbox)
