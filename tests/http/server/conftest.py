import pytest


@pytest.fixture(scope="module", autouse=True)
def on_one_core() -> None:
    """Let a server and its clients race on all cores."""
