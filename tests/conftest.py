"""What tests in several folders share: examples that are the same in every run, and a pool for what mostly waits."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, settings

AT_A_TIME = 8
"""Programs that are started beside each other."""

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    """Plays cases a few at a time, since each spends its time waiting."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield pool
