"""A worker in a bridge session, read line by line."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from support.process.worker_process import SECONDS

BRIDGE = Path(__file__).parents[3] / "worker" / "bridge.py"


class Bridge:
    """A host in a bridge session.

    Args:
        command: The worker's command; the mock if empty.
    """

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command or (sys.executable, "-P", "-m", "lmwire_worker", "--mock"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

        assert self.process.stdin and self.process.stdout
        self._stdin, self._stdout = self.process.stdin, self.process.stdout

    def __enter__(self) -> "Bridge":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=SECONDS)

    def send(self, *commands: dict[str, Any]) -> None:
        self.write("".join(json.dumps(command) + "\n" for command in commands))

    def write(self, lines: str) -> None:
        self._stdin.write(lines)

    def read(self) -> dict[str, Any]:
        """The next line, which a worker that does not write it must not keep the tests waiting for."""
        limit = threading.Timer(SECONDS, self.process.kill)
        limit.start()
        line = b""
        # A buffer would take a part of what `rest` returns.
        while not line.endswith(b"\n") and (byte := os.read(self._stdout.fileno(), 1)):
            line += byte
        limit.cancel()
        return json.loads(line)

    def rest(self) -> list[dict[str, Any]]:
        """Close its input, and return the rest of its output."""
        out, _ = self.process.communicate(timeout=SECONDS)
        return [json.loads(line) for line in out.splitlines()]
