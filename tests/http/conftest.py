"""Servers that the tests of one run share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from random_vision import write_vision_model
from support.http.http_server import MOCK, Server, served, workers_on_threads
from support.http.one_tls_context import one_tls_context
from support.process.one_core import on_one_core

__all__ = ["on_one_core", "one_tls_context", "workers_on_threads"]


@pytest.fixture(scope="session")
def mock_server() -> Iterator[Server]:
    """Serve the mock worker, which describes each request in its answer, under any model's name."""
    with served("--worker", MOCK) as server:
        yield server


@pytest.fixture(scope="session")
def tiny_server() -> Iterator[Server]:
    """Serve the built-in model as `builtin:tiny`, with a real worker."""
    with served("builtin:tiny", "--request-templates") as server:
        yield server


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[Server]:
    """Serve a mock worker that reasons, calls tools and fails on demand, as scripted_answers.json defines."""
    script = Path(__file__).with_name("scripted_answers.json")
    with served("--worker", f"{MOCK} --scenario {script}") as server:
        yield server


@pytest.fixture(scope="session")
def gated_server() -> Iterator[Server]:
    """Serve a mock worker that can be held at every point of a request, as held_answers.json defines."""
    script = Path(__file__).with_name("held_answers.json")
    with served("--worker", f"{MOCK} --scenario {script}") as server:
        yield server


@pytest.fixture(scope="session")
def seeing_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model with random weights that sees, whose short name is `Sees`."""
    return write_vision_model(tmp_path_factory.mktemp("models") / "Sees", "qwen3_vl")


@pytest.fixture(scope="session")
def seeing_server(seeing_folder: Path) -> Iterator[Server]:
    """Serve the model that sees. To load its libraries takes a worker seconds."""
    with served(str(seeing_folder)) as server:
        yield server
