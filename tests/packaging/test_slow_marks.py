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

def test_a_load(tmp_path) -> None:
    mx.save_safetensors(str(tmp_path / "a.safetensors"), {"a": mx.zeros(1)})
    mx.load(str(tmp_path / "a.safetensors"))

@pytest.mark.slow
def test_one_with_the_mark(started) -> None:
    start()

def test_one_that_does_neither() -> None:
    pass
"""


def test_a_test_without_the_mark_neither_starts_a_process_nor_loads_a_model(tmp_path: Path) -> None:
    (file := tmp_path / "test_marks.py").write_text(TESTS)
    settings = ["-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "conftest"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *settings, str(file)]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}  # pytest repeats messages there
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    assert "3 failed, 2 passed, 1 error" in done.stdout
    assert done.stdout.count("mark it with pytest.mark.slow") == 4
    assert "this test loads " in done.stdout
