"""A connector whose lines a test writes, in the place of the process."""

import os
import threading
from collections.abc import Callable, Sequence
from signal import SIGKILL, Signals
from typing import IO

import msgspec

from lmwire.mcp.messages import Command, Report


class FakeConnector:
    """A child whose other ends the test holds.

    Attributes:
        commands: What the host has sent, in its order.
        signals: The signals that the host has sent.
    """

    pid = 0

    def __init__(self, answer: "Callable[[FakeConnector, Command], None]") -> None:
        self.commands: list[Command] = []
        self.signals: list[Signals] = []
        received, stdin = os.pipe()
        stdout, self._reports = os.pipe()
        stderr, self._errors = os.pipe()
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb", 0)
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb", 0)
        self.stderr: IO[bytes] = os.fdopen(stderr, "rb", 0)
        self._answer = answer
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(received,), daemon=True)
        self._thread.start()

    def report(self, report: Report) -> None:
        self.write(msgspec.json.encode(report) + b"\n")

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._reports, data) :]

    def write_error(self, text: str) -> None:
        os.write(self._errors, text.encode())

    def end(self) -> None:
        """End as a process does: its pipes are closed."""
        if not self._ended.is_set():
            self._ended.set()
            os.close(self._reports)
            os.close(self._errors)

    def wait(self) -> int:
        self._ended.wait()
        return 0

    def signal(self, signal: Signals) -> None:
        self.signals.append(signal)
        if signal == SIGKILL:
            self.end()

    def _run(self, received: int) -> None:
        with os.fdopen(received, "rb") as lines:
            for line in lines:
                command = msgspec.json.decode(line, type=Command)
                self.commands.append(command)
                self._answer(self, command)
        self.end()


class Spawner:
    """Starts fake connectors, and keeps them.

    Args:
        answer: Handles each command of each connector.
    """

    def __init__(self, answer: Callable[[FakeConnector, Command], None]) -> None:
        self.started: list[FakeConnector] = []
        self._answer = answer

    def __call__(self, _: Sequence[str]) -> FakeConnector:
        self.started.append(FakeConnector(self._answer))
        return self.started[-1]
