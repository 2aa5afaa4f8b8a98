"""A real server for a test, on a port that was free.

Most tests need only the server's answers: `served` runs it on a thread of the test's process, and its workers too.
What concerns the process itself, such as its signals, its stderr and its environment, takes `served_process`.
"""

import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGTERM
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lmwire_http.cli.main import parse
from lmwire_http.http.context import make_app_state
from lmwire_http.pool import replica
from lmwire_http.server.server import make_server
from lmwire_http.server.sockets import listen
from lmwire_http.telemetry.logs import TextFormatter
from support.process.process_waits import stop
from support.process.worker_process import SECONDS
from support.process.worker_thread import worker_of_a_pool

MOCK = f"{sys.executable} -P -m lmwire_worker --mock"
"""Command of a mock worker, which answers as worker/MOCK.md describes."""


class Server:
    """A running server.

    Args:
        url: Where it listens.
        log: The lines of its log, which grows.
    """

    def __init__(self, url: str, log: list[str]) -> None:
        self.url, self.log = url, log

    def figure(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels.

        A worker's own metric needs such a sample: a worker that does not answer in time has none for a moment.
        On a server with workers of several models, name the model: a sum without one that does not answer is too small.
        """
        samples: list[Sample] = []

        def read() -> bool:
            samples[:] = [sample for sample in self._samples(name) if labels.items() <= sample.labels.items()]
            return bool(samples) or not name.startswith(("lmwire_worker_", "lmwire_prompt_cache_"))

        wait_until(read, f"{name} {labels} has no sample")
        return sum(sample.value for sample in samples)

    def wait_for(self, name: str, value: float, **labels: str) -> None:
        """Wait until that sum is the value."""
        wait_until(lambda: self.figure(name, **labels) == value, f"{name} {labels} never came to {value}")

    def _samples(self, name: str) -> list[Sample]:
        with urlopen(f"{self.url}/metrics", timeout=SECONDS) as response:
            families = text_string_to_metric_families(response.read().decode())
        return [sample for family in families for sample in family.samples if sample.name == name]

    def wait_for_line(self, pattern: str) -> str:
        """Wait until a line of the log matches the regular expression, and return it."""
        found: list[str] = []

        def look() -> bool:
            found.extend(line for line in [*self.log] if re.search(pattern, line))
            return bool(found)

        wait_until(look, f"the log has no line with {pattern}")
        return found[0]


class ServerProcess(Server):
    """A server in a process of its own, whose log is its stderr.

    Args:
        process: Its process.
        url: Where it listens.
        log: What it has written to stderr, which grows.
    """

    def __init__(self, process: "subprocess.Popen[str]", url: str, log: list[str]) -> None:
        super().__init__(url, log)
        self.process = process

    def worker_process(self) -> int:
        """The process of the first worker that has loaded a model, once it has."""
        found = re.search(r"worker (\d+) has loaded", self.wait_for_line("has loaded"))
        assert found
        return int(found[1])


def wait_until(condition: Callable[[], bool], problem: str) -> None:
    """Wait for a condition that no event reports."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, problem
        time.sleep(0.005)


@contextmanager
def stopped_worker(server: ServerProcess) -> Iterator[None]:
    """Stop the server's worker while the block runs, after it has loaded its model: no answer ends meanwhile."""
    process = server.worker_process()
    stop(process)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, SIGCONT)


SILENT = ("--keep-alive", f"{10 * SECONDS:.0f}")
"""Options of a server whose streams send no waiting events. During a slow load they would come among the chunks that a
test compares."""


@contextmanager
def served(*options: str) -> Iterator[Server]:
    """A server with these options of `lmwire serve` on a thread of this process; ended at the block's end, in order.

    Its workers run on threads too, where `workers_on_threads` applies. Its streams send no waiting events unless
    the options say so. Its log also has the lines of other servers on threads, which do nothing meanwhile.
    """
    settings = parse(["--port", "0", *SILENT, *options], dict(os.environ))
    log: list[str] = []
    with listen(settings) as found, _logged(log):
        server = make_server(make_app_state(settings))
        thread = threading.Thread(target=server.run, args=([*found.sockets],), name="server", daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive(), "the server did not start")
            yield Server(found.address, log)
        finally:
            server.should_exit = True
            thread.join(SECONDS)
            assert not thread.is_alive(), "the server did not end"


@pytest.fixture(scope="session", autouse=True)
def workers_on_threads() -> Iterator[None]:
    """Run workers of the pools in this process on threads, if they may. A conftest.py that imports it applies it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replica, "AsyncWorker", worker_of_a_pool)
        yield


class _Lines(logging.Handler):
    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log = log
        self.setFormatter(TextFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self._log.append(f"{self.format(record)}\n")


@contextmanager
def _logged(log: list[str]) -> Iterator[None]:
    lines, logger = _Lines(log), logging.getLogger("lmwire_http")
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(lines)


@contextmanager
def served_process(*options: str, directory: Path | None = None) -> Iterator[ServerProcess]:
    """A server in a process of its own, with these options of `lmwire serve`; ended at the block's end, in order.

    Args:
        options: Its command line.
        directory: Where it is started; where the tests are when None.
    """
    listening = () if "--uds" in options else ("--port", "0")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "lmwire_http", *listening, *SILENT, *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
    )
    assert process.stderr
    log: list[str] = []
    try:
        for line in process.stderr:
            log.append(line)
            if found := re.search(r'serves on ([^\s"]+)', line):
                break
        else:
            raise RuntimeError(f"the server did not start: {''.join(log)}")
        reader = threading.Thread(target=_read, args=(process.stderr, log), daemon=True)
        reader.start()
        yield ServerProcess(process, found[1], log)
        if process.poll() is None:
            process.send_signal(SIGTERM)
            assert process.wait(SECONDS) == 0, "".join(log)
        reader.join(SECONDS)  # the log is whole after the block
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _read(lines: Iterator[str], log: list[str]) -> None:
    for line in lines:
        log.append(line)
