"""The Python client treats each invalid event as the vectors require of a host."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import pytest

from lmwire.protocol.session import ClientSession, RequestEvents
from lmwire_conformance import vector as vectors
from lmwire_conformance.vector import Vector
from lmwire_protocol import Hello, decode_command

INVALID_EVENTS: Final = vectors.read("events.invalid")
COMMANDS: Final = {vector.entry["cmd"]: vector.object for vector in vectors.read("commands.valid")}
"""A valid line of each command."""
LIMITS: Final = {"line_in_bytes": 1, "line_out_bytes": 1, "requests": 1, "queued_bytes": 1}
FACTS: Final = {"protocol": 1, "worker": "w", "pid": 1, "engines": [], "features": [], "limits": LIMITS}

SHOWN_BY: Final[dict[str, Callable[[ClientSession, Sequence[RequestEvents]], bool]]] = {
    "end": lambda session, arrivals: bool(session.violation) and not arrivals,
    "ignore": lambda session, arrivals: not session.violation and not arrivals,
    "accept": lambda session, arrivals: not session.violation and bool(arrivals),
    "either": lambda session, arrivals: True,
}
"""Checks of a session, by the value of an entry's `host`."""


def waiting_for(command: str) -> ClientSession:
    """Return a session whose `hello` was answered, and whose request "1" is in flight."""
    session = ClientSession()
    fields = {name: value for name, value in COMMANDS[command].items() if name != "id"}
    session.send(decode_command(fields))
    id, _ = session.send(Hello())
    session.receive(msgspec.json.encode({"event": "done", "id": id, **FACTS}) + b"\n")
    assert session.violation is None
    return session


@pytest.mark.parametrize("vector", INVALID_EVENTS, ids=[vector.name for vector in INVALID_EVENTS])
def test_the_python_client_does_what_a_host_does(vector: Vector) -> None:
    session = waiting_for(vector.entry.get("command", "generate"))
    arrivals = session.receive(vector.line + b"\n")
    assert SHOWN_BY[vector.entry["host"]](session, arrivals)


def test_every_answer_occurs() -> None:
    assert {vector.entry["host"] for vector in INVALID_EVENTS} == set(SHOWN_BY)
