"""A worker as a real process over real pipes, for tests that speak the protocol line by line."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Self

Event = dict[str, Any]

SECONDS = 120.0
"""Time limit of any wait of any test. A machine ten times slower needs only a part of it."""

TERMINALS = ("done", "error")


class WorkerProcess:
    """One worker. A thread reads every line that it writes.

    Args:
        arguments: arguments of `python -m lmwire_worker`.
        command: another command to run instead.
        read: whether to read its output from the start; otherwise `start_reading` begins.
        read_stderr: whether to read its stderr.
        start: starts it in another way than as a process.
        popen: keywords of the process.
    """

    def __init__(
        self,
        *arguments: str,
        command: list[str] | None = None,
        read: bool = True,
        read_stderr: bool = True,
        start: Callable[..., Any] = subprocess.Popen,
        **popen: Any,
    ) -> None:
        self.process: subprocess.Popen[bytes] = start(
            command or [sys.executable, "-P", "-m", "lmwire_worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **popen,
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.events: list[Event] = []
        self.lines: list[bytes] = []
        self.stderr = b""
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, args=(self.stdout,), daemon=True)
        self._stderr_reader = threading.Thread(target=self._read_stderr, args=(self.process.stderr,), daemon=True)
        if read_stderr:
            self._stderr_reader.start()
        if read:
            self.start_reading()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        self.stdin.close()

    def start_reading(self) -> None:
        """Begin to read its output."""
        self._reader.start()

    def send(self, *commands: Event) -> None:
        """Write commands, all in one write."""
        self.write(b"".join(json.dumps(command).encode() + b"\n" for command in commands))

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        view = memoryview(data)
        while view:
            view = view[self.stdin.write(view) :]

    def close_stdin(self) -> None:
        """Close its input."""
        self.stdin.close()

    def wait_for(self, wanted: Callable[[Event], bool]) -> Event:
        """Return the first event, past or future, that is wanted."""
        seen = 0
        with self._news:
            while True:
                for event in self.events[seen:]:
                    if wanted(event):
                        return event
                seen = len(self.events)
                assert not self._ended, f"the worker's output ended; stderr: {self.stderr.decode()!r}"
                assert self._news.wait(SECONDS), f"not seen; last events: {self.events[-3:]}"

    def wait_for_stderr(self, part: bytes) -> None:
        """Wait until the worker's stderr contains a text."""
        with self._news:
            assert self._news.wait_for(lambda: part in self.stderr, SECONDS), f"not seen: {self.stderr.decode()!r}"

    def terminal(self, id: str) -> Event:
        """Wait for the terminal of a request, and return it."""
        return self.wait_for(lambda event: event.get("id") == id and event["event"] in TERMINALS)

    def call(self, command: Event) -> Event:
        """Send a command, and return its terminal."""
        self.send(command)
        return self.terminal(command["id"])

    def load(self, path: object, id: str = "load", **fields: Any) -> Event:
        """Load a model, which must succeed, and return its `done`."""
        done = self.call({"id": id, "cmd": "load", "path": str(path), **fields})
        assert done["event"] == "done", done
        return done

    def first_token(self, id: str) -> Event:
        """Wait for the first token event of a request, and return it."""
        return self.wait_for(lambda event: event.get("id") == id and event["event"] == "token")

    def of(self, id: str) -> list[Event]:
        """Return the events of a request so far."""
        with self._news:
            return [event for event in self.events if event.get("id") == id]

    def text(self, id: str) -> str:
        """Return the text of a request so far."""
        return "".join(event["token"] for event in self.of(id) if event["event"] == "token")

    def token_ids(self, id: str) -> list[int]:
        """Return the token ids of a request so far."""
        return [token for event in self.of(id) if event["event"] == "token" for token in event["token_ids"]]

    def wait_end(self) -> int:
        """Wait for the process to exit and for all of its output, and return its exit code."""
        code = self.process.wait(SECONDS)
        self.wait_output_end()
        if self._stderr_reader.ident is not None:
            self._stderr_reader.join(SECONDS)
        return code

    def wait_output_end(self) -> None:
        """Wait for the end of its stdout, but not for its exit."""
        self._reader.join(SECONDS)
        assert self._ended, "its stdout has not ended"

    def quit(self) -> int:
        """Send `quit`, and return the exit code."""
        self.send({"id": "the-quit", "cmd": "quit"})
        return self.wait_end()

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        os.kill(self.process.pid, number)

    @property
    def resident_bytes(self) -> int:
        """Memory that the process occupies, in bytes."""
        answer = subprocess.run(["ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, check=True)
        return int(answer.stdout) * 1024

    def check_terminals(self, ids: Iterable[str]) -> None:
        """Check that every id has exactly one terminal, as its last event."""
        for id in ids:
            events = self.of(id)
            assert events, f"{id} was never answered"
            assert [event["event"] in TERMINALS for event in events] == [False] * (len(events) - 1) + [True], events

    def _read(self, stdout: Any) -> None:
        rest = b""
        while data := stdout.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            with self._news:
                for line in lines:
                    self.lines.append(line)
                    self.events.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            assert rest == b"", f"half a line: {rest!r}"
            self._ended = True
            self._news.notify_all()

    def _read_stderr(self, stderr: Any) -> None:
        while data := stderr.read(1 << 16):
            with self._news:
                self.stderr += data
                self._news.notify_all()
