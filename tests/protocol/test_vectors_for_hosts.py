"""The Python client treats each invalid event as the vectors require of a host, and no required member is left out."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from lmwire.protocol.session import ClientSession, RequestEvents
from lmwire_conformance import vector as vectors
from lmwire_conformance.vector import Vector
from lmwire_protocol import COMMANDS as COMMAND_TYPES
from lmwire_protocol import Hello, decode_command
from support.many_cases import for_each
from support.process.lmwire_command import REPOSITORY

if TYPE_CHECKING:
    from lmwire_protocol.json_value import JsonValue

EVENTS: Final = REPOSITORY / "protocol/schema/v1/events.inc"
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


@for_each(INVALID_EVENTS, lambda vector: vector.name)
def test_the_python_client_does_what_a_host_does(vector: Vector) -> None:
    session = waiting_for(vector.entry.get("command", "generate"))
    arrivals = session.receive(vector.line + b"\n")
    assert SHOWN_BY[vector.entry["host"]](session, arrivals)


def test_every_answer_occurs() -> None:
    assert {vector.entry["host"] for vector in INVALID_EVENTS} == set(SHOWN_BY)


def lacks(event: "JsonValue", path: str) -> bool:
    """Return whether an event lacks a member, at any depth, while the object around it is there."""
    name, dot, rest = path.partition(".")
    member = name.removesuffix("[]")
    if not isinstance(event, dict) or not dot:
        return isinstance(event, dict) and event.get(member) is None
    inner = event.get(member)
    if name == member:
        return lacks(inner, rest)
    return isinstance(inner, list) and any(lacks(item, rest) for item in inner)


def required_members() -> set[tuple[str, str]]:
    """Return the form and the path of each member that is always present, but those of `progress`."""
    rows = re.findall(r'^MEMBER\("(.*)", "(.*)", ".*", 1\)$', EVENTS.read_text(encoding="utf-8"), re.MULTILINE)
    return {(form, path) for form, path in rows if not path.endswith("[]") and form != "progress"}


def lacking(vector: Vector) -> set[tuple[str, str]]:
    """Return which of them an entry's event lacks."""
    event = parsed(vector.line)
    if not isinstance(event, dict):
        return set()
    kind = event.get("event")
    form = COMMAND_TYPES[vector.entry["command"]].done.__name__ if kind == "done" else kind
    return {(each, path) for each, path in required_members() if each == form and lacks(event, path)}


def test_every_member_that_is_always_present_has_a_line_without_it() -> None:
    required = required_members()
    assert len(required) > 80
    assert required - {member for vector in INVALID_EVENTS for member in lacking(vector)} == set()


def test_a_host_ends_after_each_line_without_such_a_member() -> None:
    assert {vector.name for vector in INVALID_EVENTS if lacking(vector) and vector.entry["host"] != "end"} == set()


def parsed(line: bytes) -> "JsonValue":
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
