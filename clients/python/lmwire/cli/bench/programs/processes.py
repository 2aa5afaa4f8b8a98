"""Programs driven through their pipes, with as little code between as possible."""

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

from ....child_process import child_environment, python_command
from ...errors import CliError
from ..decode_rate import DecodeRate

WORKER: Final = [sys.argv[0], "worker"]
"""The command that a host starts: this very program."""
_decode = msgspec.json.decode


class BenchmarkProcess:
    """A child process with pipes. Exiting its context closes its stdin, which ends it.

    Args:
        command: The program and its arguments.
    """

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
        """Write to the process's stdin."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read_line(self) -> bytes:
        """Return the next line of the process's stdout.

        Raises:
            CliError: The process ended.
        """
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise CliError(f"a process of the benchmark ended early: {self._process.args}")
        return line

    def processor_seconds(self) -> float:
        """Return the processor time of the process and of those that it started, in seconds."""
        import psutil  # the worker's requirement

        process = psutil.Process(self._process.pid)
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        return sum(time.user + time.system for time in times)


class LibraryProcess(BenchmarkProcess):
    """A process in which a model library generates by itself.

    Args:
        model: The model folder.
        program: Name of the module in this package to run.
    """

    def __init__(self, model: Path, program: str = "mlx_lm_batch") -> None:
        super().__init__(python_command(f"{__package__}.{program}", str(model)))
        self.read_line()

    def rate(self, streams: int, tokens: int, step: int = 0) -> float:
        """Return the tokens a second of all streams together.

        Args:
            streams: Number of streams in one batch.
            tokens: Length of each stream, in tokens.
            step: Tokens by which each stream's prompt is longer than that of the one before.
        """
        self.write(b"%d %d 0 %d\n" % (streams, tokens, step))
        return float(self.read_line())

    def read_prompt(self, prompt_tokens: int) -> None:
        """Compute one token after the prompt of `workload.long_prompt`.

        Args:
            prompt_tokens: Length of the prompt, in tokens.
        """
        self.write(b"1 1 %d 0\n" % prompt_tokens)
        self.read_line()


class WorkerProcess(BenchmarkProcess):
    """An lmwire worker, driven without a client.

    Args:
        options: The worker's command line.
        command: The command that runs the worker.
    """

    def __init__(self, *options: str, command: Sequence[str] = WORKER) -> None:
        super().__init__([*command, *options])

    def resident_bytes(self) -> int:
        """Return the memory of the worker's process, in bytes."""
        import psutil

        return psutil.Process(self._process.pid).memory_info().rss

    def send(self, commands: dict[str, Command]) -> None:
        """Write commands, by their ids, in one write."""
        self.write(b"".join(encode_command(id, command) for id, command in commands.items()))

    def events(self, terminals: int = 1) -> Iterator[dict[str, Any]]:
        """Yield the next events, up to the given number of terminals.

        Raises:
            CliError: An event is an error.
        """
        while terminals:
            event = _decode(self.read_line())
            if event["event"] == "error":
                raise CliError(f"the worker refused the benchmark: {event['error']}")
            terminals -= event["event"] == "done"
            yield event

    def ask(self, command: Command) -> dict[str, Any]:
        """Send one command and return its `done`."""
        self.send({"ask": command})
        *_, done = self.events()
        return done

    def rate(self, requests: Sequence[Generation]) -> float:
        """Return the tokens a second of all requests together.

        The time runs from the write of the first request to the end of the last answer.

        Raises:
            CliError: An answer is shorter than it was asked for.
        """
        started = perf_counter()
        self.send({str(index): request for index, request in enumerate(requests)})
        generated = sum(
            event["usage"]["completion_tokens"] for event in self.events(len(requests)) if event["event"] == "done"
        )
        seconds = perf_counter() - started
        if generated != sum(request.max_tokens or 0 for request in requests):
            raise CliError("the model ended a stream early, so that rates cannot be compared; take another model")
        return generated / seconds

    def decode_rate(self, requests: Sequence[Generation]) -> float:
        """Return the tokens a second while all requests are decoded."""
        decoded = DecodeRate(len(requests))
        self.send({str(index): request for index, request in enumerate(requests)})
        for event in self.events(len(requests)):
            if event["event"] == "token":
                decoded.note(event["id"], len(event["token_ids"]), is_last=False)
            elif event["event"] == "done":
                decoded.note(event["id"], 0, is_last=True)
        return decoded.rate
