"""A worker that replays recorded lines, at little cost: `python replay_worker.py FILE`.

Each line of the file is an object with two or three members:

- `to`: the prompt or path that the lines answer, or the name of a command without either.
- `lines`: the lines as texts, with `$ID` in place of the request's id.
- `times`: how often the lines before the last one are written; once if absent.
"""

import json
import os
import sys
from typing import Any, Final

_ID: Final = b"$ID"
_BLOCK_LINES: Final = 256
"""Lines that are encoded at once."""


class Recording:
    """The lines that answer one kind of request."""

    def __init__(self, lines: list[str], times: int = 1) -> None:
        *self._repeated, self._last = (line.encode() + b"\n" for line in lines)
        self._times = times

    def write(self, id: bytes) -> None:
        """Write the lines to stdout as those of a request."""
        repeated = b"".join(self._repeated).replace(_ID, id)
        per_block = max(1, _BLOCK_LINES // max(1, len(self._repeated)))
        blocks, rest = divmod(self._times, per_block)
        block = repeated * per_block
        for _ in range(blocks):
            _write(block)
        _write(repeated * rest + self._last.replace(_ID, id))


def main() -> None:
    """Answer each command on stdin with its recorded lines, until `quit` or the end."""
    recordings: dict[str, Recording] = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            recorded: dict[str, Any] = json.loads(line)
            recordings[recorded["to"]] = Recording(recorded["lines"], recorded.get("times", 1))
    for line in sys.stdin.buffer:
        command: dict[str, Any] = json.loads(line)
        id: bytes = command["id"].encode()
        if command["cmd"] == "quit":
            _write(b'{"event":"done","id":"%b"}\n' % id)
            return
        recordings[command.get("prompt") or command.get("path") or command["cmd"]].write(id)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
