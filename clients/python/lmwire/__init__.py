"""lmwire's Python client: a model worker as a child process, driven over its pipes.

    from lmwire import Worker

    with Worker() as worker:
        worker.load("mlx-community/Qwen3-0.6B-4bit")
        with worker.chat([{"role": "user", "content": "Why is the sky blue?"}], max_tokens=200) as stream:
            for piece in stream:
                print(piece.text, end="", flush=True)
        print(stream.result.finish_reason)

A piece's `text` is the answer's, its `reasoning` the thought's before it. `stream.answer()` is the whole answer, with
`tool_calls`, `logprobs` and `message`, which continues the conversation; `answers()` are all that `n` asked for.
`embed(["a", "b"])` makes a vector of each text, and `transcribe("a.mp3")` brings what is said, segment by segment.
`image_part("a.jpg")` is an image for a message's `content`. `AsyncWorker` is the same for asyncio. `Supervisor` and
`AsyncSupervisor` start a worker again when it has died. `local_models()` are those that need no download.
Tokens are handed on several at a time, up to 30 ms after they came, or 50 ms beside seven other answers: an answer's
first one up to 20 ms, where others are being given. Its end and all else are handed on as they come. Importing the
package costs nothing: each name below is imported when it is first used. It runs on macOS and Linux.
"""

from importlib import import_module

TYPE_CHECKING = False  # a worker is started through this package, and `typing` takes longer than all of it
if TYPE_CHECKING:
    from typing import Any

    from .answer import Answer, ToolCall
    from .asyncio_worker import AsyncStream, AsyncTranscript, AsyncWorker
    from .attachments import image_part, media, sound_part
    from .base import DEFAULT_COMMAND, Embeddings, Tokens
    from .connection import Patience
    from .errors import (
        LmwireError,
        NotServed,
        ProtocolViolation,
        RequestFailed,
        RequestTimeout,
        StartFailed,
        WorkerExited,
        WorkerHung,
        WorkerLost,
        WorkerUnavailable,
    )
    from .listing import LocalModel, end_listings, local_models
    from .options import (
        ChatOptions,
        EmbedOptions,
        LoadOptions,
        MediaDict,
        MediaPartDict,
        MessageDict,
        NamedToolDict,
        Options,
        TemplateOptions,
        TextPartDict,
        ToolDict,
        TranscribeOptions,
    )
    from .pieces import CallPiece, Piece
    from .session import Arrival, Session
    from .supervisor import AsyncSupervisor, CrashLoop, Supervisor
    from .worker import Stream, Transcript, Worker

__all__ = [
    "DEFAULT_COMMAND",
    "Answer",
    "Arrival",
    "AsyncStream",
    "AsyncSupervisor",
    "AsyncTranscript",
    "AsyncWorker",
    "CallPiece",
    "ChatOptions",
    "CrashLoop",
    "EmbedOptions",
    "Embeddings",
    "LmwireError",
    "LoadOptions",
    "LocalModel",
    "MediaDict",
    "MediaPartDict",
    "MessageDict",
    "NamedToolDict",
    "NotServed",
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
    "TemplateOptions",
    "TextPartDict",
    "Tokens",
    "ToolCall",
    "ToolDict",
    "TranscribeOptions",
    "Transcript",
    "Worker",
    "WorkerExited",
    "WorkerHung",
    "WorkerLost",
    "WorkerUnavailable",
    "end_listings",
    "image_part",
    "local_models",
    "media",
    "sound_part",
]

_HOMES = {
    "Answer": "answer",
    "Arrival": "session",
    "AsyncStream": "asyncio_worker",
    "AsyncSupervisor": "supervisor",
    "AsyncTranscript": "asyncio_worker",
    "AsyncWorker": "asyncio_worker",
    "DEFAULT_COMMAND": "base",
    "CallPiece": "pieces",
    "ChatOptions": "options",
    "CrashLoop": "supervisor",
    "EmbedOptions": "options",
    "Embeddings": "base",
    "LmwireError": "errors",
    "LoadOptions": "options",
    "LocalModel": "listing",
    "MediaDict": "options",
    "MediaPartDict": "options",
    "MessageDict": "options",
    "NamedToolDict": "options",
    "NotServed": "errors",
    "Options": "options",
    "Patience": "connection",
    "Piece": "pieces",
    "ProtocolViolation": "errors",
    "RequestFailed": "errors",
    "RequestTimeout": "errors",
    "Session": "session",
    "StartFailed": "errors",
    "Stream": "worker",
    "Supervisor": "supervisor",
    "TemplateOptions": "options",
    "TextPartDict": "options",
    "Tokens": "base",
    "ToolCall": "answer",
    "ToolDict": "options",
    "TranscribeOptions": "options",
    "Transcript": "worker",
    "Worker": "worker",
    "WorkerExited": "errors",
    "WorkerHung": "errors",
    "WorkerLost": "errors",
    "WorkerUnavailable": "errors",
    "end_listings": "listing",
    "image_part": "attachments",
    "local_models": "listing",
    "media": "attachments",
    "sound_part": "attachments",
}


def __getattr__(name: str) -> "Any":
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
