"""A host that says all it has to say at once, and takes down what the mock worker writes, whatever it is."""

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
    """The command that runs a mock worker."""
    return [sys.executable, "-P", "-m", "lmwire_worker", "--mock", *options]


def faulty(*faults: str) -> list[str]:
    """The command that runs one with these faults."""
    return mock(*(option for fault in faults for option in ("--fault", fault)))


class Heard(NamedTuple):
    """What a worker has said, and how it ended."""

    stdout: bytes
    stderr: bytes
    returncode: int

    @property
    def lines(self) -> list[bytes]:
        """The lines of stdout; the last one may be half a line."""
        return self.stdout.split(b"\n")[:-1] + [half for half in self.stdout.split(b"\n")[-1:] if half]

    @property
    def events(self) -> list[Event]:
        """The lines that are JSON objects."""
        return [json.loads(line) for line in self.lines if line.startswith(b"{") and line.endswith(b"}")]

    def of(self, id: str) -> list[Event]:
        """The events of a request."""
        return [event for event in self.events if event.get("id") == id]

    def text(self, id: str = "g") -> str:
        """The text of an answer."""
        return "".join(event["token"] for event in self.of(id) if event["event"] == "token")

    def terminals(self, id: str) -> list[Event]:
        """The terminals of a request; one, when all is well."""
        return [event for event in self.of(id) if event["event"] in TERMINALS]


def hear(command: list[str], *requests: Event) -> Heard:
    """Runs a worker, with the end of input after the requests."""
    said = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
    done = subprocess.run(command, input=said, capture_output=True, timeout=SECONDS, check=False)
    return Heard(done.stdout, done.stderr, done.returncode)
