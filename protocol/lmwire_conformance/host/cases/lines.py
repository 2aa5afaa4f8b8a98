"""The lines of protocol/vectors/events.invalid.jsonl, which no worker writes, while a request is in flight."""

import json
import re
from typing import Any, Final

from ...vector import Vector, read
from .. import wire
from ..context import CaseContext
from ..played_worker import HostRequest
from .registry import variants

_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "generate": {"prompt": "Once"},
    "chat": {"messages": [{"role": "user", "content": "Hello"}]},
    "load": {"path": "/models/played"},
    "unload": {},
    "tokenize": {"prompt": "Once"},
    "embed": {"input": [{"type": "text", "text": "the sea"}]},
    "transcribe": {"audio": {"path": "/recordings/note.wav"}},
    "speak": {"text": "Buy milk."},
    "cache": {"action": "clear"},
    "ping": {},
    "stats": {},
}
"""Requests that HOSTS.md lets a case make."""


def _command(vector: Vector) -> str:
    """Return the command whose request is in flight: only the form of a `done` depends on it."""
    return vector.entry.get("command", "generate") if b'"done"' in vector.line else "generate"


def _chosen(host: str, *commands: str) -> dict[str, Vector]:
    """Return the lines that a host must treat in one way, by a name for their cases."""
    vectors = [vector for vector in read("events.invalid") if vector.entry["host"] == host]
    chosen = [vector for vector in vectors if _command(vector) in commands]
    return {re.sub(r"\W+", "-", vector.name.lower()).strip("-_").replace("_", "-"): vector for vector in chosen}


@variants(_chosen("end", *_FIELDS), "H-5")
def kills_the_worker_after(context: CaseContext, vector: Vector) -> None:
    """Kill the worker and report the request as lost."""
    worker = context.start()
    request = _request(context, _command(vector))
    worker.block_sigterm()
    worker.write_last(_line(vector, request))
    worker.expect_killed()
    context.driver.expect_failed("a", "worker_lost")


@variants(_chosen("end", "cancel"), "H-5")
def kills_the_worker_after_the_reply_to_cancel(context: CaseContext, vector: Vector) -> None:
    """Kill the worker and report the request as lost, although the request's own events are whole."""
    worker = context.start()
    request = _request(context, "generate")
    context.driver.cancel("a")
    cancel = worker.expect("cancel")
    worker.block_sigterm()
    worker.write_last(_line(vector, cancel), wire.result_done(request.id, "cancelled"))
    worker.expect_killed()
    context.driver.expect_failed("a", "worker_lost")


@variants(_chosen("end", "hello"), "H-5")
def kills_the_worker_after_the_reply(context: CaseContext, vector: Vector) -> None:
    """Kill the worker and report a failed start, without waiting longer."""
    worker = context.spawn(timeout=3 * context.timeout)
    hello = worker.expect("hello")
    worker.block_sigterm()
    worker.write_last(_line(vector, hello))
    context.driver.expect_start("start_failed")
    worker.expect_killed()


@variants(_chosen("ignore", "generate"), "H-5", "V-4")
def ignores_the_line(context: CaseContext, vector: Vector) -> None:
    """Ignore the line, and go on."""
    worker = context.start()
    request = _request(context, "generate")
    worker.write(_line(vector, request), wire.token(request.id, "a"), wire.result_done(request.id))
    context.driver.expect_done("a", text="a")


@variants(_chosen("accept", *_FIELDS), "V-4")
def accepts_the_line(context: CaseContext, vector: Vector) -> None:
    """Accept an event in which only a value is unknown."""
    command = _command(vector)
    worker = context.start()
    request = _request(context, command)
    if b'"done"' in vector.line:
        worker.forget(request.id)
        worker.write(_line(vector, request))
        context.driver.expect_done("a", finish_reason=None)
    else:
        worker.write(_line(vector, request), wire.result_done(request.id))
        context.driver.expect_done("a")


@variants(_chosen("either", *_FIELDS), "H-5")
def kills_the_worker_or_goes_on_after(context: CaseContext, vector: Vector) -> None:
    """End the request in either way: kill the worker and report it as lost, or take or ignore the event."""
    command = _command(vector)
    worker = context.start()
    request = _request(context, command)
    worker.write_last(_line(vector, request), wire.error(request.id, "engine_error"))
    context.driver.end_of("a")


def _request(context: CaseContext, command: str) -> HostRequest:
    context.ask("a", command, **_FIELDS[command])
    return context.worker.expect(command)


def _line(vector: Vector, request: HostRequest) -> bytes:
    """Return a line with the id of the request in flight in the place of "1"."""
    return vector.line.replace(b'"id":"1"', b'"id":' + json.dumps(request.id).encode()) + b"\n"
