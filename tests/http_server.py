"""A real server for a test: `python -m lmwire_http` in a process of its own, on a port that was free."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGTERM

from worker_process import SECONDS

MOCK = f"{sys.executable} -m lmwire_worker --mock"
"""A worker without a model: it answers as its README, worker/MOCK.md, says."""


class Server:
    """A running server.

    Args:
        process: Its process.
        url: Where it listens.
    """

    def __init__(self, process: "subprocess.Popen[str]", url: str, log: list[str]) -> None:
        self.process, self.url, self.log = process, url, log


@contextmanager
def served(*options: str) -> Iterator[Server]:
    """A server with these options of `lmwire serve`; ended at the block's end, in order."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lmwire_http", "--port", "0", *options], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    log: list[str] = []
    try:
        for line in process.stderr:
            log.append(line)
            if found := re.search(r"serves on (\S+)", line):
                break
        else:
            raise RuntimeError(f"the server did not start: {''.join(log)}")
        threading.Thread(target=log.extend, args=(process.stderr,), daemon=True).start()
        yield Server(process, found[1], log)
        process.send_signal(SIGTERM)
        process.wait(SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
