"""A worker that replays recorded lines, at little cost: `python replay_worker.py FILE`.

Each line of the file is an object with these members:

- `to`: the prompt or path that the lines answer, or the name of a command without either.
- `lines`: the lines as texts, with `$ID` in place of the request's id.
- `times`: how often the lines before the last one are written; once if absent.
- `together`: number of requests that are answered together, line by line in turns; one if absent.
"""

import fcntl
import json
import os
import socket
import sys
from contextlib import suppress
from typing import Any, Final

_ID: Final = b"$ID"
_BUFFER_BYTES: Final = 1024 * 1024
_BLOCK_BYTES: Final = 64 * 1024
"""Size of a write, if lines are repeated."""


class Recording:
    """The lines that answer one kind of request.

    Args:
        lines: The lines, with `$ID` in place of the id.
        times: How often the lines before the last one are written.
        together: Number of requests that are answered together.
    """

    def __init__(self, lines: list[str], times: int = 1, together: int = 1) -> None:
        *repeated, last = lines
        self._repeated = [line.encode() + b"\n" for line in repeated]
        self._last = last.encode() + b"\n"
        self._times, self._together = times, together
        self._ids: list[bytes] = []

    def answer(self, id: bytes) -> None:
        """Write the lines for a request, or wait for others that are answered together with it."""
        self._ids.append(id)
        if len(self._ids) < self._together:
            return
        turn = b"".join([line.replace(_ID, id) for line in self._repeated for id in self._ids])
        turns = max(1, _BLOCK_BYTES // max(1, len(turn)))
        blocks, rest = divmod(self._times, turns)
        block = turn * turns
        for _ in range(blocks):
            _write(block)
        _write(turn * rest + b"".join([self._last.replace(_ID, id) for id in self._ids]))
        self._ids.clear()


def main() -> None:
    """Answer each command on stdin with its recorded lines, until `quit` or the end."""
    _enlarge_stdout()
    recordings: dict[str, Recording] = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            recorded: dict[str, Any] = json.loads(line)
            name: str = recorded.pop("to")
            recordings[name] = Recording(**recorded)
    for line in sys.stdin.buffer:
        command: dict[str, Any] = json.loads(line)
        id: bytes = command["id"].encode()
        if command["cmd"] == "quit":
            _write(b'{"event":"done","id":"%b"}\n' % id)
            return
        recordings[command.get("prompt") or command.get("path") or command["cmd"]].answer(id)


def _enlarge_stdout() -> None:
    """Enlarge the buffer of stdout as far as the system allows, so that the reader seldom waits for this process."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, _BUFFER_BYTES)
    with suppress(OSError), socket.socket(fileno=os.dup(1)) as stdout:  # Node's pipes are sockets
        stdout.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
