import pytest


@pytest.fixture(scope="module", autouse=True)
def on_one_core() -> None:
    """Let the workers of a server race on all cores."""
