"""Real MCP servers, each with a connector of its own: their start, their calls and their end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from lmwire.mcp import McpCallFailed, McpServerConfig, McpServers
from lmwire.mcp.connection import Connection
from support.http.http_server import wait_until
from support.mcp.running import hostile_server, http_tool_server, tool_server

pytestmark = pytest.mark.slow


@asynccontextmanager
async def settled(*configs: McpServerConfig) -> AsyncIterator[McpServers]:
    async with McpServers(configs) as servers:
        await servers.settled()
        yield servers


async def ready(config: McpServerConfig) -> McpServers:
    """Return servers that are ready, as one over HTTP is after some attempts."""
    servers = McpServers([config])
    servers.connections = {config.name: Connection(config, 600, sleep=lambda _: asyncio.sleep(0))}
    await servers.__aenter__()
    while servers.statuses()[0].state != "ready":
        await asyncio.sleep(0.01)
    return servers


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_tools_are_listed_called_and_stopped(transport: str, tmp_path: Path) -> None:
    async def run(config: McpServerConfig) -> None:
        servers = await ready(config)
        try:
            await check_calls(servers, tmp_path / "file")
        finally:
            await servers.__aexit__(None, None, None)

    if transport == "stdio":
        asyncio.run(run(tool_server()))
    else:
        with http_tool_server() as url:
            asyncio.run(run(McpServerConfig(name="tools", url=url)))


async def check_calls(servers: McpServers, file: Path) -> None:
    [status] = servers.statuses()
    tool = status.tools[0]
    assert (tool.name, tool.tool, tool.description) == ("tools__add", "add", "Add two numbers.")
    assert [*tool.parameters["properties"]] == ["a", "b"]
    assert (await servers.call("tools__add", {"a": 1, "b": 2})).text == "3"
    failed = await servers.call("tools__fail", {"reason": "it rains"})
    assert failed.is_error
    assert "it rains" in failed.text
    wrong = await servers.call("tools__add", {"a": "one"})
    assert wrong.is_error
    with pytest.raises(KeyError):
        await servers.call("tools__none", {})
    with pytest.raises(KeyError):
        await servers.call("none__add", {})
    call = asyncio.create_task(servers.call("tools__wait", {"file": str(file)}))
    await holds(file, "started")
    call.cancel()
    await holds(file, "cancelled")
    assert (await servers.call("tools__add", {"a": 1, "b": 2})).text == "3"


def test_a_server_that_ends_in_a_call_is_started_again(tmp_path: Path) -> None:
    async def run() -> None:
        servers = await ready(hostile_server("ends in its first call", tmp_path / "started"))
        with pytest.raises(McpCallFailed, match="has ended"):
            await servers.call("hostile__go", {})
        while True:  # the new one may be starting
            try:
                assert (await servers.call("hostile__go", {})).text == "done"
                break
            except McpCallFailed:
                await asyncio.sleep(0.01)
        await servers.__aexit__(None, None, None)

    asyncio.run(run())


def test_a_program_gets_no_variable_that_its_config_does_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")

    async def run() -> None:
        async with settled(hostile_server("reads variables", tmp_path / "started", GIVEN="value")) as servers:
            assert (await servers.call("hostile__go", {"name": "HF_TOKEN"})).text == "not set"
            assert (await servers.call("hostile__go", {"name": "GIVEN"})).text == "value"

    asyncio.run(run())


def test_a_server_that_does_not_start_fails_alone(tmp_path: Path) -> None:
    missing = McpServerConfig(name="missing", command=str(tmp_path / "none"))

    async def run() -> None:
        async with settled(missing, hostile_server("adds", tmp_path / "started")) as servers:
            failed, working = servers.statuses()
            assert (failed.state, failed.problem) == ("failed", "cannot be started: No such file or directory")
            assert working.state == "ready"
            with pytest.raises(McpCallFailed, match="missing is not ready: it cannot be started"):
                await servers.call("missing__go", {})

    asyncio.run(run())


async def holds(file: Path, text: str) -> None:
    await asyncio.to_thread(wait_until, lambda: file.exists() and file.read_text() == text, f"no {text}")


def test_a_server_that_keeps_its_connector_busy_is_ended_with_it(tmp_path: Path) -> None:
    async def run() -> None:
        config = hostile_server("slow schema", tmp_path / "started")
        servers = McpServers([config, hostile_server("adds", tmp_path / "other", "tools")])
        servers.connections["hostile"] = Connection(config, 0.2, cancel_s=0.2)
        async with servers:
            await servers.settled()
            process = psutil.Process(int((tmp_path / "started").read_text()))
            with pytest.raises(McpCallFailed, match=r"gave no result in 0\.2 s"):
                await servers.call("hostile__go", {})
            await asyncio.to_thread(process.wait)
            assert (await servers.call("tools__add", {"a": 1, "b": 2})).text == "3"

    asyncio.run(run())


def test_programs_that_do_not_exit_end_with_their_host(tmp_path: Path) -> None:
    started = tmp_path / "started"

    async def run() -> list[psutil.Process]:
        async with settled(hostile_server("does not exit", started)):
            await asyncio.to_thread(wait_until, lambda: "child" in started.read_text(), "no child")
            server = psutil.Process(int(started.read_text().split()[0]))
            return [server, *server.children()]

    for process in asyncio.run(run()):
        process.wait(20)
