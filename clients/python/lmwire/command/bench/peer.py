"""The two programs that are compared, driven at their pipes with nothing between."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from lmwire_protocol import Command, encode_command
from lmwire_protocol.commands import Generation

from ...children import child_environment, python_command
from ..failures import Failure

WORKER: Final = [sys.argv[0], "worker"]
"""What a host starts: this very command."""
_decode = msgspec.json.decode


class Program:
    """A child process with pipes. Leaving it closes its stdin, which ends it."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._process.kill()
        self._process.communicate()

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read_line(self) -> bytes:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise Failure(f"a process of the benchmark ended early: {self._process.args}")
        return line


class InProcess(Program):
    """A model library in one process."""

    def __init__(self, model: Path, program: str = "in_process") -> None:
        super().__init__(python_command(f"{__package__}.{program}", str(model)))
        self.read_line()

    def rate(self, streams: int, tokens: int) -> float:
        """Tokens a second, of all streams together."""
        self.write(b"%d %d\n" % (streams, tokens))
        return float(self.read_line())


class Worker(Program):
    """An lmwire worker, with as little of a host as there can be."""

    def __init__(self, *options: str) -> None:
        super().__init__([*WORKER, *options])

    def send(self, commands: dict[str, Command]) -> None:
        """Writes commands by their ids, in one write."""
        self.write(b"".join(encode_command(id, command) for id, command in commands.items()))

    def events(self, terminals: int = 1) -> Iterator[dict[str, Any]]:
        """The next events, up to the given number of terminals.

        Raises:
            Failure: one of them is an error.
        """
        while terminals:
            event = _decode(self.read_line())
            if event["event"] == "error":
                raise Failure(f"the worker refused the benchmark: {event['error']}")
            terminals -= event["event"] == "done"
            yield event

    def ask(self, command: Command) -> dict[str, Any]:
        """Sends one command and returns its `done`."""
        self.send({"ask": command})
        *_, done = self.events()
        return done

    def rate(self, requests: Sequence[Generation]) -> float:
        """Tokens a second, of all requests together, from the write of the first to the end of the last."""
        started = perf_counter()
        self.send({str(index): request for index, request in enumerate(requests)})
        made = sum(
            event["usage"]["completion_tokens"] for event in self.events(len(requests)) if event["event"] == "done"
        )
        seconds = perf_counter() - started
        if made != sum(request.max_tokens or 0 for request in requests):
            raise Failure("the model ended a stream early, so that rates cannot be compared; take another model")
        return made / seconds
