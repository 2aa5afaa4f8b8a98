"""One plain chat runs few files of the worker."""

import pytest

from trace_chat import traced_files

MAX_FILES = 32
"""Number of files that a reader follows for one plain chat. Lower it with each file that leaves the path."""


@pytest.mark.slow
def test_a_plain_chat_runs_few_files() -> None:
    files = traced_files()
    assert {"worker.py", "generation/runner.py", "session/output_queue.py"} <= set(files)
    assert len(files) <= MAX_FILES, files
