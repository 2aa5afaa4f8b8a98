"""Hosts that go away in different ways, in whatever state their worker is."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

from support.process.process_waits import GONE_SECONDS, wait_gone, wait_until_still, watch
from support.process.worker_process import SECONDS, TERMINALS, Event

RELAY = [sys.executable, str(Path(__file__).with_name("relay_host.py"))]
LAUNCHER = [sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"]
"""Command that starts a worker on its own pipes."""

WAYS = ("is killed", "is killed but for its pipes", "closes stdout", "closes stdin", "closes both")
HOST_GONE = 74


class Host:
    """A host with a worker. It reads output only when a method asks for it.

    Args:
        way: one of `WAYS` to go away.
        arguments: the worker's arguments.
    """

    def __init__(self, way: str, *arguments: str) -> None:
        self._way = way
        module = ["-P", "-m", "lmwire_worker", *arguments]
        through = {WAYS[0]: [*RELAY, *arguments], WAYS[1]: [*LAUNCHER, *module]}
        command = through.get(way, [sys.executable, *module])
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin and self.process.stdout
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._output = b""
        self._sent: list[str] = []
        pid = {"host_pid": self.process.pid} if way == WAYS[1] else {}
        self.send({"id": "hello", "cmd": "hello", **pid})
        self.read_until(b"\n")
        self._worker: int = json.loads(self._output)["pid"]
        self._watched = watch(self._worker)

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        for end in (self._stdin, self._stdout):
            end.close()
        if isinstance(self._watched, int):
            os.close(self._watched)

    def send(self, *commands: Event) -> None:
        """Write commands, all in one write."""
        self._sent += [command["id"] for command in commands]
        self._stdin.write(b"".join(json.dumps(command).encode() + b"\n" for command in commands))

    def read_until(self, text: bytes) -> None:
        """Read until `mark` has arrived."""
        while text not in self._output:
            assert self._read(), f"the output ended without {text!r}: {self._output[-300:]!r}"

    def wait_for_pause(self) -> None:
        """Wait until the worker stands still, since nobody reads its output."""
        wait_until_still(self._worker)

    def go(self) -> None:
        """Go away, and check that the worker ends as it must."""
        if self._way in WAYS[:2]:
            self.process.kill()
        if self._way in ("closes stdout", "closes both"):
            self._stdout.close()
        if self._way in ("closes stdin", "closes both"):
            self._stdin.close()
        if self._way == "closes stdin":
            self._check_all_is_finished()
            return
        wait_gone(self._watched)
        if self._way == "closes stdout":
            assert self.process.wait(GONE_SECONDS) == HOST_GONE
        elif self._way == "closes both":
            assert self.process.wait(GONE_SECONDS) in (0, HOST_GONE), "with nothing in flight, its input has ended"

    def _read(self) -> bool:
        ready, _, _ = select.select([self._stdout], [], [], SECONDS)
        assert ready, f"nothing comes any more; the last was {self._output[-300:]!r}"
        data = os.read(self._stdout.fileno(), 65536)
        self._output += data
        return bool(data)

    def _check_all_is_finished(self) -> None:
        while self._read():
            pass
        assert self.process.wait(SECONDS) == 0
        events = [json.loads(line) for line in self._output.splitlines()]
        ended = [event["id"] for event in events if event["event"] in TERMINALS]
        assert sorted(ended) == sorted(self._sent)
        assert all(event["event"] == "done" for event in events if event["event"] in TERMINALS), events[-3:]
        assert all(event.get("finish_reason") != "cancelled" for event in events)
