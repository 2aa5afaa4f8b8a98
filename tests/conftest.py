"""Configuration of all tests: repeatable examples, programs that start quickly, and a pool for tests that wait."""

import atexit
import gc
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lmwire_worker.process.private_directory import use_private_directory

AT_A_TIME = 8
"""Number of programs that run at the same time."""
FIRST = ("worker/test_generation.py", "worker/test_embed_and_transcribe.py")
"""Files that take long. They run first: at the end of a run, one core would wait for the other."""

FAST = ("output_parsing", "prompts", "protocol", "text_stream", "tool_parsers")
"""Folders whose tests start few programs and load few models. `make check` runs only these."""
SLOW_FILES = ("test_prose_replayed.py", "test_vectors_replayed.py")

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

TESTS = str(Path(__file__).parent)
CHILD_SITE = str(Path(__file__).with_name("child_site"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (CHILD_SITE, TESTS, os.environ.get("PYTHONPATH"))))

os.environ["LMWIRE_CONFIG"] = os.devnull  # the developer's own config file must not change a test

# Tests share the code that MLX has compiled. Their own temporary files stay in the usual directory.
temporary = tempfile.gettempdir()
use_private_directory(atexit.register)
tempfile.tempdir = temporary


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with some files and keep the order of all others. Mark the slow tests."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(FIRST))
    for item in items:
        if item.path.parent.name not in FAST or item.path.name in SLOW_FILES:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Exempt the objects of the collected tests and their imports from garbage collection.

    These objects live until the end. Garbage is collected often: before each test of the client, and when a model is
    freed. Each collection would search all of these objects, for a third of a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    """Yield a pool that plays a few cases at a time, since each spends its time waiting."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield pool
