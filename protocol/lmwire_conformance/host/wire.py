"""The events of the worker that the kit plays.

They are dictionaries, because some hold fields and values that no worker sends yet.
"""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from lmwire_protocol import FEATURES, escape_separators

Event: TypeAlias = dict[str, Any]


def encode(event: Event) -> bytes:
    """Return an event as a line."""
    return escape_separators(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()) + b"\n"


def token(id: str, text: str, token_ids: list[int] | None = None, **more: Any) -> Event:
    """Return a `token` event; one token by default."""
    return {"event": "token", "id": id, "token": text, "token_ids": [1] if token_ids is None else token_ids, **more}


def tool_call(id: str, index: int = 0, **more: Any) -> Event:
    """Return a `tool_call` event."""
    return {"event": "tool_call", "id": id, "index": index, **more}


def logprob(token_id: int, text: str, value: float | None, **more: Any) -> dict[str, Any]:
    """Return an item of `logprobs`, or of its `top`."""
    return {"token_id": token_id, "token": text, "logprob": value, **more}


def progress(id: str, stage: str = "prefill", unit: str = "tokens") -> Event:
    """Return a `progress` event, half of the way."""
    return {"event": "progress", "id": id, "stage": stage, "current": 1, "total": 2, "unit": unit}


def error(id: str | None, code: str, *, retryable: bool = False, **more: Any) -> Event:
    """Return an `error` event; without an id if `id` is None."""
    head = {"event": "error"} if id is None else {"event": "error", "id": id}
    return {**head, "error": f"the kit says {code}", "code": code, "retryable": retryable, **more}


def result_done(id: str, *finish_reasons: str) -> Event:
    """Return the `done` of `generate` and `chat`, with a finish reason for each choice."""
    first, *others = finish_reasons or ("stop",)
    usage = {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 2}
    timings = {"queued_ms": 0.1, "prefill_ms": 1.5, "first_token_ms": 1.6, "total_ms": 2.5, "decode_tps": 90.0}
    done = {"event": "done", "id": id, "finish_reason": first, "seed": 7, "usage": usage, "timings": timings}
    choices = [{"finish_reason": reason, "completion_tokens": 2} for reason in (first, *others)]
    return {**done, "choices": choices} if others else done


def hello_done(id: str, features: Sequence[str] = FEATURES) -> Event:
    """Return the `done` of `hello`."""
    return {
        "event": "done",
        "id": id,
        "protocol": 1,
        "worker": "lmwire-conformance",
        "pid": 4711,
        "engines": ["played"],
        "features": [*features],
        "limits": {"line_in_bytes": 33554432, "line_out_bytes": 61440, "requests": 1024, "queued_bytes": 268435456},
    }


def model_done(id: str) -> Event:
    """Return the `done` of `load` and `info`."""
    return {
        "event": "done",
        "id": id,
        "path": "/models/played",
        "model_type": "played",
        "vocab_size": 512,
        "layers": 2,
        "hidden_size": 64,
        "context_len": 4096,
        "weights_bytes": 1024,
        "capabilities": ["generate", "chat", "tokenize"],
    }


def embedding(id: str, index: int, dims: int, values: Sequence[float] | str, offset: int | None = None) -> Event:
    """Return an `embedding` event; `values` are numbers, or their base64."""
    place = {} if offset is None else {"offset": offset}
    numbers = values if isinstance(values, str) else [*values]
    return {"event": "embedding", "id": id, "index": index, **place, "dims": dims, "embedding": numbers}


def embed_done(id: str, count: int, dimensions: int) -> Event:
    """Return the `done` of `embed`."""
    usage = {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 0}
    return {"event": "done", "id": id, "count": count, "dimensions": dimensions, "usage": usage}


def segment(id: str, index: int, text: str, **more: Any) -> Event:
    """Return a `segment` event of one second."""
    return {"event": "segment", "id": id, "index": index, "start_s": index, "end_s": index + 1, "text": text, **more}


def transcribe_done(id: str, finish_reason: str = "stop") -> Event:
    """Return the `done` of `transcribe`."""
    timings = {"queued_ms": 0.1, "total_ms": 2.5}
    return {"event": "done", "id": id, "finish_reason": finish_reason, "duration_s": 2.0, "timings": timings}


def audio(id: str, index: int, samples: str) -> Event:
    """Return an `audio` event; `samples` are base64."""
    return {"event": "audio", "id": id, "index": index, "sample_rate": 16000, "audio": samples}


def speak_done(id: str, finish_reason: str = "stop") -> Event:
    """Return the `done` of `speak`."""
    return {**transcribe_done(id, finish_reason), "seed": 7}


def cancel_done(id: str, matched: int) -> Event:
    """Return the `done` of `cancel`."""
    return {"event": "done", "id": id, "matched": matched}


def ping_done(id: str, state: str = "idle") -> Event:
    """Return the `done` of `ping`."""
    return {"event": "done", "id": id, "state": state, "active": 0, "queued": 0}


def stats_done(id: str) -> Event:
    """Return the `done` of `stats`."""
    return {
        "event": "done",
        "id": id,
        "uptime_ms": 1.0,
        "requests": {"accepted": 0, "active": 0, "queued": 0, "done": 0, "errors": 0, "cancelled": 0},
        "tokens": {"prompt": 0, "completion": 0},
        "memory": {"active_bytes": 0, "cache_bytes": 0, "peak_bytes": 0},
        "outbox_bytes": 0,
    }


def quit_done(id: str) -> Event:
    """Return the `done` of `quit`."""
    return {"event": "done", "id": id}
