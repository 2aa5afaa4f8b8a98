"""The mark `slow` is checked: a test without it that starts a process or loads a model fails, and says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.process.lmwire_command import REPOSITORY
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

TESTS = """
import subprocess, threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
import mlx.core as mx
import pytest

def start() -> None:
    subprocess.run(["true"], check=True)

@pytest.fixture
def started() -> None:
    start()

def test_itself() -> None:
    start()

def test_its_fixture(started) -> None:
    pass

def test_its_thread() -> None:
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

@pytest.fixture(scope="module")
def left() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool

def test_a_load(tmp_path) -> None:
    mx.save_safetensors(str(tmp_path / "a.safetensors"), {"a": mx.zeros(1)})
    mx.load(str(tmp_path / "a.safetensors"))

@pytest.mark.slow
def test_one_with_the_mark(started) -> None:
    start()

@pytest.mark.slow
def test_one_that_leaves_a_thread(left) -> None:
    left.submit(start).result()

def test_one_beside_work_of_that_thread(left) -> None:
    left.submit(start).result()

def test_one_that_does_neither() -> None:
    pass
"""


def run_tests(folder: Path, *options: str) -> str:
    """Return what pytest prints about the tests of a folder, which keep the rules of these."""
    settings = ["-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", str(folder), "-p", "conftest"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *settings, *options, str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}  # pytest repeats messages there
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment).stdout


def test_a_test_without_the_mark_neither_starts_a_process_nor_loads_a_model(tmp_path: Path) -> None:
    (tmp_path / "test_marks.py").write_text(TESTS)
    printed = run_tests(tmp_path)
    assert "3 failed, 4 passed, 1 error" in printed
    assert printed.count("mark it with pytest.mark.slow") == 4
    assert "this test loads " in printed


def test_files_whose_tests_are_all_slow_are_not_imported_for_the_fast_ones(tmp_path: Path) -> None:
    (tmp_path / "test_slow.py").write_text("import pytest\npytestmark = pytest.mark.slow\nraise AssertionError\n")
    (tmp_path / "test_fast.py").write_text("def test_one() -> None:\n    pass\n")
    assert "1 passed" in run_tests(tmp_path, "-m", "not slow")
    assert "1 error" in run_tests(tmp_path, "-m", "not nightly")
