"""A host that sends all its requests at once, and records whatever the mock worker writes."""

import json
import subprocess
import sys
from typing import Any, NamedTuple

from support.process.worker_process import SECONDS, TERMINALS

Event = dict[str, Any]

HELLO = {"id": "h", "cmd": "hello"}
LOAD = {"id": "l", "cmd": "load", "path": "mock"}
GENERATE = {"id": "g", "cmd": "generate", "prompt": "a b c d e"}
CONVERSATION = (HELLO, LOAD, GENERATE)


def mock(*options: str) -> list[str]:
    """Return the command that runs a mock worker."""
    return [sys.executable, "-P", "-m", "lmwire_worker", "--mock", *options]


def faulty(*faults: str) -> list[str]:
    """Return the command that runs a mock worker with these faults."""
    return mock(*(option for fault in faults for option in ("--fault", fault)))


class WorkerOutput(NamedTuple):
    """Output and exit code of a worker."""

    stdout: bytes
    stderr: bytes
    returncode: int

    @property
    def lines(self) -> list[bytes]:
        """Lines of stdout; the last one may be incomplete."""
        return self.stdout.split(b"\n")[:-1] + [half for half in self.stdout.split(b"\n")[-1:] if half]

    @property
    def events(self) -> list[Event]:
        """Lines that are JSON objects, decoded."""
        return [json.loads(line) for line in self.lines if line.startswith(b"{") and line.endswith(b"}")]

    def of(self, id: str) -> list[Event]:
        """Return the events of a request."""
        return [event for event in self.events if event.get("id") == id]

    def text(self, id: str = "g") -> str:
        """Return the text of an answer."""
        return "".join(event["token"] for event in self.of(id) if event["event"] == "token")

    def terminals(self, id: str) -> list[Event]:
        """Return the terminals of a request. A correct worker writes exactly one."""
        return [event for event in self.of(id) if event["event"] in TERMINALS]


def run_worker(command: list[str], *requests: Event) -> WorkerOutput:
    """Run a worker to its end, with only these requests as its input, and return its output."""
    said = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
    done = subprocess.run(command, input=said, capture_output=True, timeout=SECONDS, check=False)
    return WorkerOutput(done.stdout, done.stderr, done.returncode)
