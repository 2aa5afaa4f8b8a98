"""Servers for real clients: one with the built-in model, one that calls tools as scripted_answers.json defines.

The clients run at night. Their sample for each commit is tests/http/captured, which replays the requests they sent.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clients.agents import write_long_model
from support.clients.installation import package_models
from support.clients.relay import Relay, relayed
from support.clients.running import Outside, client_environment, no_outside
from support.http.http_server import MOCK, served_process


@pytest.fixture(scope="session")
def tiny_url() -> Iterator[str]:
    with served_process("builtin:tiny") as server:
        yield server.url


@pytest.fixture(scope="session")
def scripted_url() -> Iterator[str]:
    script = Path(__file__).with_name("scripted_answers.json")
    with served_process("--worker", f"{MOCK} --scenario {script}") as server:
        yield server.url


@pytest.fixture(scope="session")
def smollm2_url() -> Iterator[str]:
    """Yield a server with the built-in model and one that others trained, whose calls follow their schemas."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(package_models()))
        with served_process("builtin:tiny", "smollm2", "--strict-tools") as server:
            yield server.url


@pytest.fixture(scope="module")
def tiny(tiny_url: str) -> Iterator[Relay]:
    """Yield what the clients of one file and the server with the built-in model send each other."""
    with relayed(tiny_url) as relay:
        yield relay


@pytest.fixture(scope="module")
def scripted(scripted_url: str) -> Iterator[Relay]:
    """Yield what the clients of one file and the server with a scripted worker send each other."""
    with relayed(scripted_url) as relay:
        yield relay


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    """Yield what the clients of one file reach in place of other machines."""
    with no_outside() as outside:
        yield outside


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, outside: Outside) -> dict[str, str]:
    """Return the environment of the clients of one file, with a home of their own."""
    return client_environment(tmp_path_factory.mktemp("home"), outside)


@pytest.fixture(scope="session")
def long_context_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_process(str(write_long_model(tmp_path_factory.mktemp("models") / "long"))) as server:
        yield server.url


@pytest.fixture
def long_context(long_context_url: str) -> Iterator[Relay]:
    """Yield what an agent and the server with a model of long context send each other."""
    with relayed(long_context_url) as relay:
        yield relay
