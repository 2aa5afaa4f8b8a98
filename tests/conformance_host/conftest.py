"""Cases are played a few at a time: each spends its time waiting."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

AT_A_TIME = 8


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield pool
