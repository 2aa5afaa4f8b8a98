"""Lines of a strange worker: valid events, changed events, and anything else."""

import json
import random
from typing import Any

from lmwire_conformance import vector as vectors

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**53,
    10**400,
    1e308,
    0.5,
    "",
    "x",
    "\ufffe\x1b[2J\u2028",
    "{",
    "[" * 5000,
    "1" * 5000,
    '{"a":NaN}',
    "{}",
    [],
    [[]],
    [{}],
    ["x"],
    {},
    {"a": []},
]
RAW = [b"", b"\xff", b"\x00", b"[1]", b"{", b'{"event":1e999}', b"[" * 30_000, b"x" * 70_000, b'{"event":"token"}\r']

CALL = {"event": "tool_call", "index": 0, "call_id": "c", "name": "look", "complete": True}
EVENTS: list[dict[str, Any]] = [
    {"event": "news"},
    {"event": "news", "id": []},
    {"event": "news", "id": {}},
    {**CALL, "arguments": "[" * 5000},
    {**CALL, "arguments": '{"a":' + "1" * 5000 + "}"},
    {**CALL, "arguments": '{"a":' * 400 + "1" + "}" * 400},
]
"""Unknown events, and tool calls with extreme arguments."""


class Stranger:
    """A source of lines for a host that has sent some commands.

    Args:
        seed: seed of the random choices; the same seed gives the same lines.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._events = [(vector.entry.get("command"), vector.object) for vector in vectors.read("events.valid")]
        self._sent: list[dict[str, Any]] = [{"id": "1", "cmd": "ping"}]

    def note(self, command: dict[str, Any]) -> None:
        """Record a command of the host, to answer it later."""
        self._sent.append(command)

    def line(self) -> bytes:
        """Return a line, without its newline."""
        if self._chance.random() < 0.1:
            return self._chance.choice(RAW)
        command = self._chance.choice(self._sent[-4:])
        odd = self._chance.random() < 0.1
        event = {"id": command.get("id"), **self._chance.choice(EVENTS if odd else self._fitting(command))}
        if not odd:
            event["id"] = command.get("id")
        for _ in range(self._chance.choice([0, 0, 0, 1, 1, 2])):
            self._change(event)
        return json.dumps(event, ensure_ascii=self._chance.random() < 0.5).encode("utf-8", "surrogatepass")

    def value(self, like: Any = None) -> Any:
        """Return a value: one shaped like a pattern, with odd parts, or any odd value."""
        if isinstance(like, dict) and self._chance.random() < 0.8:
            return {name: self.value(item) for name, item in like.items()}
        if isinstance(like, list) and self._chance.random() < 0.8:
            return [self.value(item) for item in like]
        return like if self._chance.random() < 0.4 else self._chance.choice(ODD)

    def _fitting(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events that a command can have, or now and then all events."""
        fitting = [event for cmd, event in self._events if cmd in (command.get("cmd"), None)]
        return fitting if fitting and self._chance.random() < 0.9 else [event for _, event in self._events]

    def _change(self, event: dict[str, Any]) -> None:
        name = self._chance.choice([*event, "new", "bad_id", "code", "choices", "usage"])
        inner = event.get(name)
        if isinstance(inner, dict) and inner and self._chance.random() < 0.7:
            event[name] = dict(inner)
            self._change(event[name])
        elif self._chance.random() < 0.3:
            event.pop(name, None)
        else:
            event[name] = self._chance.choice(ODD)
