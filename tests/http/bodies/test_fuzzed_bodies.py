"""Bodies that are damaged or oversized get an error that is JSON, or an answer, and never fail the server.

`LMWIRE_FUZZ_SECONDS=3600 make test-all` looks for an hour.
"""

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from lmwire_http.app import ENDPOINTS
from support.http.asgi_app import LocalApp, local_app
from support.http.http_pool import awaited
from support.media.damage import damage
from support.media.fuzzing import fuzz_seconds
from support.process.worker_process import SECONDS

CAPTURED = Path(__file__).parents[1] / "captured"
TEXTS = ["", "a", "\ud83d\ude00", "null", '"', "\\", "x" * 5000, "1e308", "data:image/png;base64,", "/etc/passwd", "\0"]
NUMBERS = [0, -1, 2**31, 2**53, 2**64, 10**400, 1e308, -0.0, 5e-324, 0.1]
MESSAGE = {"role": "user", "content": "Hi"}
CHAT = "/v1/chat/completions"
OVERSIZED: list[tuple[str, Any]] = [
    ("/v1/completions", {"prompt": [""] * 7_500_000}),
    ("/v1/completions", {"prompt": [[1]] * 100_000}),
    (CHAT, {"messages": [MESSAGE] * 20_000}),
    (CHAT, {"messages": [MESSAGE], "logit_bias": {str(key): 1 for key in range(20_000)}}),
    (CHAT, {"messages": [MESSAGE], "stop": ["a"] * 20_000}),
    (CHAT, {"messages": [MESSAGE], **{f"x{key}": key for key in range(20_000)}}),
    (CHAT, {"messages": [MESSAGE], "tools": [{"type": "function", "function": {"name": "f"}}] * 20_000}),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 20_000}]}),
    ("/v1/responses", {"input": [MESSAGE] * 20_000}),
    ("/v1/messages", {"max_tokens": 1, "messages": [MESSAGE] * 20_000}),
    ("/v1/rerank", {"query": "a", "documents": ["a"] * 20_000}),
    ("/v1/embeddings", {"input": ["a"] * 20_000}),
    ("/api/chat", {"messages": [MESSAGE] * 20_000, "stream": False}),
    ("/infill", {"input_extra": [{"text": "a"}] * 20_000}),
]
SEEDS: list[tuple[str, Any]] = [
    *(
        (request["path"].partition("?")[0], request["body"])
        for file in sorted(CAPTURED.glob("*.json"))
        for request in json.loads(file.read_text(encoding="utf-8"))
    ),
    ("/v1/completions", {"prompt": ["a", "b"], "echo": True, "max_tokens": 2, "logit_bias": {"5": 1}, "stop": ["x"]}),
    ("/v1/embeddings", {"input": ["a", "b"], "encoding_format": "base64"}),
    ("/v1/audio/speech", {"input": "a", "voice": "alloy", "response_format": "pcm"}),
    ("/v1/tokenize", {"messages": [MESSAGE], "tools": [{"type": "function", "function": {"name": "f"}}]}),
    ("/v1/detokenize", {"tokens": [1, 2]}),
    ("/v1/apply-template", {"messages": [MESSAGE]}),
    ("/v1/models/download", {"model": "owner/name", "max_bytes": 1}),
    ("/v1/models/download/size", {"model": "owner/name"}),
    ("/v1/mcp/call", {"name": "clock__now", "arguments": {"zone": "UTC"}}),
    ("/v1/rerank", {"query": "a", "documents": ["a", {"text": "b"}], "top_n": 1}),
    ("/v1/responses", {"input": [{"type": "item_reference", "id": "a"}], "tools": [{"type": "custom", "name": "f"}]}),
    ("/v1/messages/count_tokens", {"messages": [MESSAGE], "system": [{"type": "text", "text": "a"}]}),
    ("/infill", {"input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "f", "text": "a"}]}),
    ("/api/generate", {"prompt": "a", "stream": False, "options": {"num_predict": 2, "stop": ["a"]}}),
    ("/api/embed", {"input": ["a"]}),
    ("/api/show", {"model": "mock"}),
]
FORM = (
    b'--B\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n'
    b'--B\r\ncontent-disposition: form-data; name="timestamp_granularities[]"\r\n\r\nword\r\n--B--\r\n'
)
FORM_PATH = "/v1/audio/transcriptions"
FAILURES = {500, 502}
WITHOUT_SEEDS = {
    "/v1/pdf/text",  # starts a process for each body
    "/api/pull",
    "/api/embeddings",
    "/v1/models/load",
    "/v1/models/unload",
    "/api/v1/models/load",
    "/api/v1/models/unload",
}
"""Paths whose bodies have a model and a text at most."""


def test_each_path_with_a_body_has_a_seed() -> None:
    paths = {path for path, _ in SEEDS} | {FORM_PATH}
    types = {None, *(endpoint.request_type for endpoint in ENDPOINTS if endpoint.path in paths)}
    unseeded = [each.path for each in ENDPOINTS if each.request_type not in types and each.path not in WITHOUT_SEEDS]
    assert unseeded == []


@awaited
async def test_an_oversized_list_is_refused() -> None:
    async with local_app() as app:
        for path, body in OVERSIZED:
            encoded = json.dumps(body, separators=(",", ":")).encode()
            sent = await app.post(path, gzip.compress(encoded, 1), content_encoding="gzip")
            assert sent.status == 400, (path, sent.body[:500])
            assert json.loads(sent.body)["error"]


@awaited
async def test_a_damaged_body_gets_an_error_or_an_answer() -> None:
    random, end = Random(38), monotonic() + fuzz_seconds()
    async with local_app() as app:
        while monotonic() < end:
            path, body = random.choice(SEEDS)
            await _check(app, path, _mutated_bytes(random, body), random)
            form = damage(FORM, random) if random.random() < 0.9 else FORM
            sent = await app.post(FORM_PATH, form, content_type="multipart/form-data; boundary=B")
            assert sent.status not in FAILURES, form


async def _check(app: LocalApp, path: str, body: bytes, random: Random) -> None:
    headers = {"content_encoding": "gzip"} if random.random() < 0.1 else {}
    async with asyncio.timeout(SECONDS):
        sent = await app.post(path, gzip.compress(body, 1) if headers else body, **headers)
    assert sent.status not in FAILURES, (path, body[:5000], sent.body)
    if sent.status >= 400:
        json.loads(sent.body)


def _mutated_bytes(random: Random, body: Any) -> bytes:
    for _ in range(random.randint(1, 3)):
        body = _mutated(random, body)
    if isinstance(body, dict):
        body = {**body, "model": "mock"} if random.random() < 0.9 else body
    encoded = json.dumps(body, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    return damage(encoded, random) if random.random() < 0.2 else encoded


def _mutated(random: Random, value: Any) -> Any:
    """Return a value in which one thing, at any depth, is another."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        name = random.choice([*value])
        return (
            _changed_object(random, value, name)
            if random.random() < 0.3
            else {
                **value,
                name: _mutated(random, value[name]),
            }
        )
    if isinstance(value, list) and value and random.random() < 0.85:
        place = random.randrange(len(value))
        if random.random() < 0.3:
            return random.choice(LIST_CHANGES)(value, place)
        return [*value[:place], _mutated(random, value[place]), *value[place + 1 :]]
    return _any_value(random)


def _changed_object(random: Random, value: dict[str, Any], name: str) -> Any:
    rest = {each: item for each, item in value.items() if each != name}
    return random.choice([rest, {**rest, random.choice(TEXTS): value[name]}, {**value, "unknown": _any_value(random)}])


LIST_CHANGES: list[Callable[[list[Any], int], Any]] = [
    lambda value, place: value[:place],
    lambda value, place: value * 3,
    lambda value, place: [value[place]] * 1100,
    lambda value, place: [*value, value],
    lambda value, place: value[place],
]


def _any_value(random: Random) -> Any:
    deep: Any = "a"
    for _ in range(random.choice([1, 5, 110, 140])):
        deep = random.choice([[deep], {"properties": deep}, {"type": deep}])
    return random.choice(
        [None, True, False, random.choice(TEXTS), random.choice(NUMBERS), [], {}, ["a"] * 70, deep, {"type": "a"}]
    )
