"""Models that clients load and unload by themselves."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.pool import Pool, managed_model
from support.http.http_pool import MOCK, asked, awaited, figures, pooled, until
from support.http.http_server import Server, served
from support.http.raw_http import CHAT, chat_body
from support.http.raw_http import asked as http
from support.process.stepped_worker import in_a_row, let_through, started

KEY = "secret"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served("builtin:tiny", "--api-key", KEY) as server:
        yield server


def post(server: Server, path: str, **fields: Any) -> Any:
    answer = http(server.url, "POST", path, fields, authorization=f"Bearer {KEY}")
    assert answer.status == 200, answer
    return answer.json


def state(server: Server) -> str:
    [model] = http(server.url, "GET", "/v1/models", authorization=f"Bearer {KEY}").json["data"]
    assert model["loaded"] == (model["state"] == "loaded")
    return model["state"]


@pytest.mark.slow
def test_a_model_is_loaded_and_unloaded_when_a_client_says_so(server: Server) -> None:
    loaded = post(server, "/v1/models/load", model="builtin:tiny")
    assert (loaded["model"], loaded["status"], loaded["type"]) == ("builtin:tiny", "loaded", "llm")
    assert loaded["load_time_seconds"] > 0
    assert loaded["memory_bytes"] > 0
    assert state(server) == "loaded"
    unloaded = post(server, "/v1/models/unload", model="builtin:tiny")
    assert (unloaded["model"], unloaded["status"]) == ("builtin:tiny", "unloaded")
    assert unloaded["freed_bytes"] > 0
    assert state(server) == "unloaded"
    assert post(server, "/v1/models/unload")["freed_bytes"] == 0
    assert post(server, CHAT, **chat_body("hello", model="builtin:tiny", max_tokens=1))["choices"]


@pytest.mark.slow
def test_llama_servers_and_lm_studios_requests_are_understood(server: Server) -> None:
    assert post(server, "/models/load", model="builtin:tiny")["success"]
    assert post(server, "/models/unload", model="builtin:tiny")["success"]
    loaded = post(server, "/api/v1/models/load", model="builtin:tiny")
    assert loaded["load_time_seconds"] > 0
    assert post(server, "/api/v1/models/unload", instance_id=loaded["instance_id"])["instance_id"] == "builtin:tiny"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1/models/load", "/v1/models/unload"])
def test_an_unknown_model_is_not_found_and_a_key_is_needed(server: Server, path: str) -> None:
    answer = http(server.url, "POST", path, {"model": "some/nonesuch"}, authorization=f"Bearer {KEY}")
    assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found")
    assert http(server.url, "POST", path, {"model": "builtin:tiny"}).status == 401
    assert http(server.url, "GET", path, authorization=f"Bearer {KEY}").headers["allow"] == "POST"


@awaited
async def test_the_memory_of_a_slow_worker_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_model, "_WORKER_REPLY_S", 0.0)  # no worker is this quick
    async with pooled(worker_command=MOCK) as pool:
        assert (await pool.load("mock")).memory_bytes is not None
        assert (await pool.unload("mock")).freed_bytes is not None


@awaited
async def test_a_model_in_use_is_not_unloaded() -> None:
    async with pooled(worker_command=MOCK) as pool:
        async with pool.lease("mock"):
            with pytest.raises(ApiError, match="mock has 1 requests") as failure:
                await pool.unload("mock")
            assert (failure.value.status, failure.value.code, failure.value.retryable) == (409, "model_in_use", True)
        first = figures(pool, "mock").replicas[0].pid
        await pool.unload("mock")
        assert figures(pool, "mock").loaded is None
        assert (await asked(pool, "mock"))[0] != first


@pytest.mark.slow
@awaited
async def test_a_load_is_shared_with_requests_and_its_state_is_listed(tmp_path: Path) -> None:
    async with pooled("mock", worker_command=in_a_row(tmp_path, "gate")) as pool:
        clients = [asyncio.create_task(pool.load("mock")), asyncio.create_task(asked(pool, "mock"))]
        await until(lambda: pool.statuses() and figures(pool, "mock").waiting == 2)
        assert await listed_state(pool) == "loading"
        await asyncio.to_thread(let_through, tmp_path, 0)
        await asyncio.gather(*clients)
        assert await listed_state(pool) == "loaded"
        assert started(tmp_path) == 1


@awaited
async def test_an_unload_goes_on_when_its_client_disconnects() -> None:
    async with pooled(worker_command=MOCK) as pool:
        await pool.load("mock")
        client = asyncio.create_task(pool.unload("mock"))
        await until(lambda: not figures(pool, "mock").replicas[0].pid)
        client.cancel()
        assert (await asked(pool, "mock"))[1] == "to be or not"


async def listed_state(pool: Pool) -> str:
    [model] = await pool.served_models()
    return model.state
