import pytest

from support.runners.stepped_turns import Turns


@pytest.fixture
def turns() -> Turns:
    return Turns()
