"""lmwire's Python client: a model worker as a child process, driven over its pipes.

    from lmwire import Worker

    with Worker() as worker:
        worker.load("mlx-community/Qwen3-0.6B-4bit")
        with worker.chat([{"role": "user", "content": "Why is the sky blue?"}], max_tokens=200) as stream:
            for piece in stream:
                print(piece.text, end="", flush=True)
        print(stream.result.finish_reason)

`AsyncWorker` is the same for asyncio. `Supervisor` and `AsyncSupervisor` start a worker again when it has died.
Importing the package costs nothing: each name below is imported when it is first used. It runs on macOS and Linux.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asyncio_worker import AsyncStream, AsyncWorker
    from .base import MessageDict, Options
    from .connection import Patience
    from .errors import (
        LmwireError,
        ProtocolViolation,
        RequestFailed,
        RequestTimeout,
        StartFailed,
        WorkerExited,
        WorkerLost,
        WorkerUnavailable,
    )
    from .session import Arrival, Piece, Session
    from .supervisor import AsyncSupervisor, CrashLoop, Supervisor
    from .worker import Stream, Worker

__all__ = [
    "Arrival",
    "AsyncStream",
    "AsyncSupervisor",
    "AsyncWorker",
    "CrashLoop",
    "LmwireError",
    "MessageDict",
    "Options",
    "Patience",
    "Piece",
    "ProtocolViolation",
    "RequestFailed",
    "RequestTimeout",
    "Session",
    "StartFailed",
    "Stream",
    "Supervisor",
    "Worker",
    "WorkerExited",
    "WorkerLost",
    "WorkerUnavailable",
]

_HOMES = {
    "Arrival": "session",
    "AsyncStream": "asyncio_worker",
    "AsyncSupervisor": "supervisor",
    "AsyncWorker": "asyncio_worker",
    "CrashLoop": "supervisor",
    "LmwireError": "errors",
    "MessageDict": "base",
    "Options": "base",
    "Patience": "connection",
    "Piece": "session",
    "ProtocolViolation": "errors",
    "RequestFailed": "errors",
    "RequestTimeout": "errors",
    "Session": "session",
    "StartFailed": "errors",
    "Stream": "worker",
    "Supervisor": "supervisor",
    "Worker": "worker",
    "WorkerExited": "errors",
    "WorkerLost": "errors",
    "WorkerUnavailable": "errors",
}


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
