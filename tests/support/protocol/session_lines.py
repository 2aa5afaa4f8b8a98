"""Lines of both sides for the tests of the checks on a worker's session."""

import json
from typing import Any

from lmwire_conformance.worker.session import CheckedSession

TIMINGS = {"queued_ms": 0.1, "total_ms": 2.0}


def send(session: CheckedSession, *commands: dict[str, Any]) -> None:
    for command in commands:
        session.note_written(json.dumps(command).encode() + b"\n")


def see(session: CheckedSession, *events: dict[str, Any]) -> None:
    for event in events:
        session.check_line(json.dumps(event).encode())


def ping(id: str) -> dict[str, Any]:
    return {"id": id, "cmd": "ping"}


def ping_done(id: str, **fields: Any) -> dict[str, Any]:
    return {"event": "done", "id": id, "state": "idle", "active": 0, "queued": 0, **fields}


def generate(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "cmd": "generate", "prompt": "Once", **fields}


def chat(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "cmd": "chat", "messages": [{"role": "user", "content": "Hi"}], **fields}


def token(id: str, text: str, *token_ids: int, **fields: Any) -> dict[str, Any]:
    return {"event": "token", "id": id, "token": text, "token_ids": list(token_ids), **fields}


def tool_call(id: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"event": "tool_call", "id": id, "index": index, **fields}


def result(id: str, tokens: int, reason: str = "length", **fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": tokens}
    done = {"event": "done", "id": id, "finish_reason": reason, "seed": 1, "usage": usage, "timings": TIMINGS}
    return {**done, **fields}


def error(code: str, id: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"event": "error", "id": id, "error": "A sentence.", "code": code, "retryable": False, **fields}


def cancelled(session: CheckedSession) -> None:
    send(session, generate("g"), {"id": "c", "cmd": "cancel", "all": True})


TOOLS = [{"type": "function", "function": {"name": "look"}}]
OPENED = tool_call("g", call_id="c", name="look")
CLOSED = tool_call("g", arguments="{}", complete=True)
HELLO = {
    "protocol": 1,
    "worker": "w",
    "pid": 1,
    "engines": [],
    "features": [],
    "limits": {"line_in_bytes": 33554432, "line_out_bytes": 61440, "requests": 1024, "queued_bytes": 268435456},
}
"""Fields of the reply to a hello."""
LOGPROB = {"token_id": 1, "token": "x", "logprob": -1.0}
CHOICE_END = {"finish_reason": "length", "completion_tokens": 0}
