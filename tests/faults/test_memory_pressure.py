"""A real worker on a machine that runs short of memory, which a file stands in for."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.slow

START = """
import sys
from lmwire_worker.process import memory_pressure
memory_pressure.PRESSURE_FILES = (sys.argv.pop(1),)
from lmwire_worker.__main__ import main
main([])
"""
CALM = "some avg10=0.00\nfull avg10=0.00\n"
CRITICAL = "some avg10=80.00\nfull avg10=70.00\n"
TINY = "builtin:tiny"


class Machine:
    """A worker with a model, and the file that it reads the pressure from."""

    def __init__(self, worker: WorkerProcess, file: Path) -> None:
        self.worker, self._file = worker, file

    def press(self, stalls: str, message: bytes) -> None:
        """Change the pressure, and wait until the worker has logged it."""
        new = self._file.with_name("new")
        new.write_text(stalls)
        new.rename(self._file)
        self.worker.wait_for_stderr(message)

    def generate(self, id: str, tokens: int) -> Event:
        return {"id": id, "cmd": "generate", "prompt": "Who are you?", "max_tokens": tokens, "ignore_eos": True}

    def ended_first(self, name: str) -> str:
        """Return which of two requests ends first: a long one, or a short one that follows."""
        long, short = f"{name} long", f"{name} short"
        self.worker.send(self.generate(long, 200), self.generate(short, 2))
        terminals = [self.worker.terminal(long), self.worker.terminal(short)]
        assert [event["event"] for event in terminals] == ["done", "done"]
        return min(terminals, key=self.worker.events.index)["id"].removeprefix(f"{name} ")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    file = tmp_path / "memory"
    file.write_text(CALM)
    with WorkerProcess(command=[sys.executable, "-P", "-c", START, str(file)]) as worker:
        worker.load(TINY)
        yield Machine(worker, file)
        assert worker.quit() == 0


def test_caches_are_freed_and_requests_run_one_after_the_other_until_the_pressure_falls(machine: Machine) -> None:
    worker = machine.worker
    assert machine.ended_first("calm") == "short"
    worker.call({"id": "pinned", "cmd": "generate", "prompt": "Keep this. " * 40, "max_tokens": 1, "cache": "pin"})
    before = worker.call({"id": "before", "cmd": "stats"})["cache"]
    machine.press(CRITICAL, b"critically short of memory")
    assert machine.ended_first("critical") == "long"
    worker.call({"id": "info", "cmd": "info"})
    after = worker.call({"id": "after", "cmd": "stats"})["cache"]
    assert after["evictions"] > before["evictions"]
    assert after["bytes"] > 0, "the pinned entry stays"
    machine.press(CALM, b"enough memory again")
    assert machine.ended_first("calm again") == "short"


def test_a_load_that_needs_more_memory_is_refused_under_critical_pressure(machine: Machine) -> None:
    worker = machine.worker
    machine.press(CRITICAL, b"critically short of memory")
    error = worker.call({"id": "more", "cmd": "load", "path": TINY})
    assert (error["code"], error["loaded"]) == ("out_of_memory", True)
    assert "because the system is critically short of memory" in error["error"]
    assert worker.call(machine.generate("still", 2))["event"] == "done"
    worker.load(TINY, id="forced", force=True)
