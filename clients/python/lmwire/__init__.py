"""lmwire's Python client: runs a model worker as a child process.

    from lmwire import Worker

    with Worker() as worker:
        worker.load("mlx-community/Qwen3-0.6B-4bit")
        with worker.chat([{"role": "user", "content": "Why is the sky blue?"}], max_tokens=200) as stream:
            for delta in stream:
                print(delta.text, end="", flush=True)
        print(stream.result.finish_reason)

A delta has `text` of the answer, or `reasoning` before it. `stream.answer()` returns the whole answer, with
`tool_calls`, `logprobs` and `message`, which continues the conversation. `answers()` returns all `n` of them.
`embed(["a", "b"])` returns a vector for each text, and `transcribe("a.mp3")` a stream of segments.
`speak("Hello")` returns a stream of audio, and its `wav()` a whole file.
`image_part("a.jpg")` is an image for a message's `content`. `AsyncWorker` has the same methods for asyncio.
`Supervisor` and `AsyncSupervisor` start a new worker after one has died. `local_models()` lists the models that need no
download.

Tokens are delivered several at a time, at most 30 ms after their arrival, or 50 ms while eight or more requests get
some. All other events are delivered at once. Each name below is imported when it is first used, so importing the
package costs nothing. The client runs on macOS and Linux.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` would take longer to import than this package, which starts every worker
if TYPE_CHECKING:
    from typing import Any

    from lmwire_protocol import __version__ as __version__

    from .asyncio_worker import AsyncWorker
    from .attachments import audio_part, image_part, media
    from .child_process import DEFAULT_COMMAND
    from .circuit_breaker import CircuitBreaker
    from .errors import (
        ContextOverflow,
        InternalError,
        InvalidAnswer,
        InvalidModel,
        InvalidRequest,
        LmwireError,
        ModelNotFound,
        ModelNotLoaded,
        OutOfMemory,
        ProtocolViolation,
        RequestCancelled,
        RequestFailed,
        RequestTimeout,
        StartFailed,
        UnsupportedByWorker,
        UnsupportedRequest,
        WorkerBusy,
        WorkerClosed,
        WorkerDraining,
        WorkerExited,
        WorkerHung,
        WorkerLost,
        WorkerUnavailable,
    )
    from .options import (
        ChatOptions,
        EmbedOptions,
        GenerateOptions,
        LoadOptions,
        MediaDict,
        MediaPartDict,
        MessageDict,
        NamedToolDict,
        PromptOptions,
        SpeakOptions,
        TemplateOptions,
        TextPartDict,
        TokensPartDict,
        ToolDict,
        TranscribeOptions,
    )
    from .protocol.deltas import TokenDelta, ToolCallDelta
    from .protocol.session import ClientSession, RequestEvents
    from .responses.answer import Answer, ToolCall
    from .responses.asyncio_stream import AsyncSpeech, AsyncStream, AsyncTranscript
    from .responses.stream import Speech, Stream, Transcript
    from .responses.values import Embeddings, Tokens, speech_samples
    from .supervisor import AsyncSupervisor, Supervisor
    from .transport.connection import ShutdownTimeouts
    from .worker import Worker
    from .worker_programs import (
        DeviceMemory,
        LocalModel,
        ModelKind,
        NameProblem,
        device_memory,
        end_listings,
        find_name_problems,
        local_models,
    )

__all__ = [
    "DEFAULT_COMMAND",
    "Answer",
    "AsyncSpeech",
    "AsyncStream",
    "AsyncSupervisor",
    "AsyncTranscript",
    "AsyncWorker",
    "ChatOptions",
    "CircuitBreaker",
    "ClientSession",
    "ContextOverflow",
    "DeviceMemory",
    "EmbedOptions",
    "Embeddings",
    "GenerateOptions",
    "InternalError",
    "InvalidAnswer",
    "InvalidModel",
    "InvalidRequest",
    "LmwireError",
    "LoadOptions",
    "LocalModel",
    "MediaDict",
    "MediaPartDict",
    "MessageDict",
    "ModelKind",
    "ModelNotFound",
    "ModelNotLoaded",
    "NameProblem",
    "NamedToolDict",
    "OutOfMemory",
    "PromptOptions",
    "ProtocolViolation",
    "RequestCancelled",
    "RequestEvents",
    "RequestFailed",
    "RequestTimeout",
    "ShutdownTimeouts",
    "SpeakOptions",
    "Speech",
    "StartFailed",
    "Stream",
    "Supervisor",
    "TemplateOptions",
    "TextPartDict",
    "TokenDelta",
    "Tokens",
    "TokensPartDict",
    "ToolCall",
    "ToolCallDelta",
    "ToolDict",
    "TranscribeOptions",
    "Transcript",
    "UnsupportedByWorker",
    "UnsupportedRequest",
    "Worker",
    "WorkerBusy",
    "WorkerClosed",
    "WorkerDraining",
    "WorkerExited",
    "WorkerHung",
    "WorkerLost",
    "WorkerUnavailable",
    "audio_part",
    "device_memory",
    "end_listings",
    "find_name_problems",
    "image_part",
    "local_models",
    "media",
    "speech_samples",
]

_MODULES = {
    "Answer": "responses.answer",
    "AsyncSpeech": "responses.asyncio_stream",
    "AsyncStream": "responses.asyncio_stream",
    "AsyncSupervisor": "supervisor",
    "AsyncTranscript": "responses.asyncio_stream",
    "AsyncWorker": "asyncio_worker",
    "ChatOptions": "options",
    "CircuitBreaker": "circuit_breaker",
    "ClientSession": "protocol.session",
    "ContextOverflow": "errors",
    "DEFAULT_COMMAND": "child_process",
    "DeviceMemory": "worker_programs",
    "EmbedOptions": "options",
    "Embeddings": "responses.values",
    "GenerateOptions": "options",
    "InternalError": "errors",
    "InvalidAnswer": "errors",
    "InvalidModel": "errors",
    "InvalidRequest": "errors",
    "LmwireError": "errors",
    "LoadOptions": "options",
    "LocalModel": "worker_programs",
    "MediaDict": "options",
    "MediaPartDict": "options",
    "MessageDict": "options",
    "ModelKind": "worker_programs",
    "ModelNotFound": "errors",
    "ModelNotLoaded": "errors",
    "NameProblem": "worker_programs",
    "NamedToolDict": "options",
    "OutOfMemory": "errors",
    "PromptOptions": "options",
    "ProtocolViolation": "errors",
    "RequestCancelled": "errors",
    "RequestEvents": "protocol.session",
    "RequestFailed": "errors",
    "RequestTimeout": "errors",
    "ShutdownTimeouts": "transport.connection",
    "SpeakOptions": "options",
    "Speech": "responses.stream",
    "StartFailed": "errors",
    "Stream": "responses.stream",
    "Supervisor": "supervisor",
    "TemplateOptions": "options",
    "TextPartDict": "options",
    "TokensPartDict": "options",
    "TokenDelta": "protocol.deltas",
    "Tokens": "responses.values",
    "ToolCall": "responses.answer",
    "ToolCallDelta": "protocol.deltas",
    "ToolDict": "options",
    "TranscribeOptions": "options",
    "Transcript": "responses.stream",
    "UnsupportedByWorker": "errors",
    "UnsupportedRequest": "errors",
    "Worker": "worker",
    "WorkerBusy": "errors",
    "WorkerClosed": "errors",
    "WorkerDraining": "errors",
    "WorkerExited": "errors",
    "WorkerHung": "errors",
    "WorkerLost": "errors",
    "WorkerUnavailable": "errors",
    "audio_part": "attachments",
    "device_memory": "worker_programs",
    "end_listings": "worker_programs",
    "find_name_problems": "worker_programs",
    "image_part": "attachments",
    "local_models": "worker_programs",
    "media": "attachments",
    "speech_samples": "responses.values",
}
"""The module of each public name."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        return import_module("lmwire_protocol").__version__
    if (module := _MODULES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
