"""A worker with its prefix cache on disk, and the worker after it."""

import subprocess
import sys
from pathlib import Path

import pytest

from random_model import write_model
from support.process.worker_process import SECONDS, Event, WorkerProcess

pytestmark = pytest.mark.slow

PROMPT = [(7 * index + 3) % 200 for index in range(150)]


def first_answer(model: Path, directory: Path) -> tuple[Event, list[int]]:
    """Return the replies of a fresh worker, after its end."""
    with WorkerProcess("--cache-dir", str(directory), "--cache-disk-bytes", "1000000000") as worker:
        worker.load(model)
        request = {"id": "1", "cmd": "generate", "prompt": PROMPT, "max_tokens": 8, "ignore_eos": True}
        done = worker.call(request)
        assert worker.call({"id": "2", "cmd": "unload"})["event"] == "done"
        assert worker.quit() == 0
        return done["usage"], worker.token_ids("1")


def test_the_first_answer_of_a_restarted_worker_begins_with_what_the_last_one_kept(tmp_path: Path) -> None:
    model, directory = write_model(tmp_path / "model"), tmp_path / "deep" / "kept"
    cold, cold_tokens = first_answer(model, directory)
    warm, warm_tokens = first_answer(model, directory)
    assert cold["cached_tokens"] == 0
    assert warm["cached_tokens"] == len(PROMPT) - 1
    assert warm_tokens == cold_tokens


@pytest.mark.parametrize("end", ['{"id":"q","cmd":"quit"}', '{"id":"q","cmd":"quit","drain":true}', ""])
def test_a_worker_ends_with_all_written_that_it_began_to_write(end: str, tmp_path: Path) -> None:
    script, written = tmp_path / "worker_that_writes.py", tmp_path / "written"
    script.write_text(
        "from pathlib import Path\n"
        "from lmwire_worker import mock\n"
        "from lmwire_worker.__main__ import main\n"
        f"mock.MockModelLoader.flush = lambda self: Path({str(written)!r}).touch()\n"
        "main(['--mock'])\n"
    )
    with WorkerProcess(command=[sys.executable, str(script)]) as worker:
        worker.load("mock")
        if end:
            worker.write(f"{end}\n".encode())
            worker.terminal("q")
        else:
            worker.close_stdin()
            assert worker.wait_end() == 0
        assert written.exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--cache-dir"], "--cache-dir needs a directory"),
        (["--cache-disk-bytes", "5"], "--cache-disk-bytes needs a --cache-dir"),
        (["--cache-dir", "a", "--cache-disk-bytes", "-1"], "--cache-disk-bytes needs a number of bytes, above 0"),
        (["--memory-limit"], "--memory-limit needs a number of bytes, above 0"),
        (["--memory-limit", "5", "--memory-limit", "6"], "--memory-limit is given twice"),
        (["--cache-dirs", "a"], "unrecognized arguments: --cache-dirs; did you mean --cache-dir?"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: list[str], problem: str) -> None:
    command = [sys.executable, "-P", "-m", "lmwire_worker", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 64
    assert problem in ended.stderr.splitlines()[0]
