"""Configuration of all tests: repeatable examples, programs that start quickly, and a pool for tests that wait."""

import atexit
import gc
import os
import re
import runpy
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from inspect import isfunction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lmwire_worker.process.private_directory import use_private_directory
from support import nightly
from support.slow_work import SlowWork

AT_A_TIME = 8
"""Number of programs that run at the same time."""
FIRST = ("worker/test_generation.py", "worker/test_embed_and_transcribe.py")
"""Files that take long. They run first: at the end of a run, one core would wait for the other."""

settings.register_profile(
    "commit", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=15
)
settings.register_profile("nightly", settings.get_profile("commit"), max_examples=200)
settings.load_profile("commit")  # an option of pytest may name the other

TESTS = str(Path(__file__).parent)
CHILD_SITE = str(Path(__file__).with_name("child_site"))
runpy.run_path(f"{CHILD_SITE}/sitecustomize.py")  # this process imports transformers too
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (CHILD_SITE, TESTS, os.environ.get("PYTHONPATH"))))

os.environ["LMWIRE_CONFIG"] = os.devnull  # the developer's own config file must not change a test

# Tests share the code that MLX has compiled. Their own temporary files stay in the usual directory.
temporary = tempfile.gettempdir()
use_private_directory(atexit.register)
tempfile.tempdir = temporary


slow_work = SlowWork()
LEFT_OUT = {"not slow": {"slow", "nightly"}, "not nightly": {"nightly"}}
"""Marks of the tests that a selection leaves out."""


def pytest_configure(config: pytest.Config) -> None:
    """Tell the files of tests, before they are imported, which values of parameters to leave out."""
    nightly.are_left_out = config.option.markexpr in LEFT_OUT


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files none of whose tests are selected: an import costs more than most fast tests."""
    marks = LEFT_OUT.get(config.option.markexpr)
    if marks is None or collection_path.suffix != ".py":
        return None
    of_the_file = re.compile(rf"^pytestmark = .*\b({'|'.join(marks)})\b", re.MULTILINE)
    return True if of_the_file.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no items of a test that is not selected; with its parameters it may be hundreds."""
    marks = LEFT_OUT.get(collector.config.option.markexpr)
    if marks is None or not isfunction(obj):
        return None
    return [] if any(mark.name in marks for mark in getattr(obj, "pytestmark", ())) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected: almost all that is made lives until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with some files and keep the order of all others. Mark nightly tests as slow too."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(FIRST))
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test without the mark `slow` whose fixtures start a process or load a model."""
    with _checking(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test without the mark `slow` that starts a process or loads a model."""
    with _checking(item):
        return (yield)


@contextmanager
def _checking(item: pytest.Item) -> Iterator[None]:
    if item.get_closest_marker("slow"):
        yield
        slow_work.excuse_running_threads()
        return
    with slow_work.watching() as found:
        yield
    if found:
        pytest.fail(
            f"this test {found[0]}: mark it with pytest.mark.slow, since `make check` runs tests without that mark, or"
            " run the work in the test's process (tests/support/process/worker_thread.py)",
            pytrace=False,
        )


@pytest.fixture(scope="module", autouse=True)
def exempt_what_is_there() -> None:
    """Exempt all objects that are there from garbage collection, before the first test of each file.

    The collected tests, their imports and the reports of earlier tests live until the end. Garbage is collected often:
    before each test of the client, and when a model is freed. Each collection would search all of these objects, for
    a third of a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    """Yield a pool that plays a few cases at a time, since each spends its time waiting."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield pool
