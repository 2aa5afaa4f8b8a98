"""The host's side of a connection: calls, their ends, and new connectors for those that have ended."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from signal import SIGKILL
from typing import Any

import pytest

from lmwire.mcp import McpCallFailed, McpResult, McpServerConfig, McpTool
from lmwire.mcp.connection import MAX_CALLS, Connection
from lmwire.mcp.messages import MAX_LINE_BYTES, Call, Cancel, Command, Connect, Failed, Finished, ListChanged
from support.mcp.fake_connector import FakeConnector, Spawner

SERVER = McpServerConfig(name="files", command="secret-program", env={"TOKEN": "secret-token"})
TOOL = McpTool(name="read", description="Read a file.", parameters={"type": "object"})
Answer = Callable[[FakeConnector, Command], None]


def ready(connector: FakeConnector, command: Command) -> None:
    """List a tool, and answer no call."""
    if isinstance(command, Connect):
        connector.report(ListChanged([TOOL], []))


def answering(answer: Callable[[FakeConnector, Call], None]) -> Answer:
    def run(connector: FakeConnector, command: Command) -> None:
        ready(connector, command)
        if isinstance(command, Call):
            answer(connector, command)

    return run


class Pauses:
    """The clock of new attempts. Each pause lasts until the test ends it."""

    def __init__(self) -> None:
        self.seconds: asyncio.Queue[float] = asyncio.Queue()
        self._over: asyncio.Queue[None] = asyncio.Queue()

    async def sleep(self, seconds: float) -> None:
        self.seconds.put_nowait(seconds)
        await self._over.get()

    async def next(self) -> float:
        """Return the next pause, once the connection has come to it."""
        return await self.seconds.get()

    def end(self) -> None:
        self._over.put_nowait(None)


@asynccontextmanager
async def connected(
    spawn: Spawner, call_limit_s: float = 600, pauses: Pauses | None = None, **options: Any
) -> AsyncIterator[Connection]:
    connection = Connection(SERVER, call_limit_s, spawn=spawn, sleep=(pauses or Pauses()).sleep, **options)
    keeping = asyncio.create_task(connection.keep())
    try:
        await connection.settled()
        yield connection
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


def test_a_call_gets_its_own_result() -> None:
    held: list[Call] = []

    def answer_in_reverse(connector: FakeConnector, call: Call) -> None:
        held.append(call)
        if len(held) == 2:
            for each in reversed(held):
                connector.report(Finished(each.id, McpResult(text=each.arguments["path"], is_error=False)))

    async def run() -> None:
        async with connected(Spawner(answering(answer_in_reverse))) as connection:
            assert connection.tools == {"read": TOOL}
            one, two = await asyncio.gather(*(connection.call("read", {"path": path}) for path in ("one", "two")))
            assert (one.text, two.text) == ("one", "two")

    asyncio.run(run())


def test_the_server_gets_its_config_and_a_call_its_arguments() -> None:
    def answer(connector: FakeConnector, call: Call) -> None:
        connector.report(Finished(call.id, problem="no such file"))

    async def run() -> None:
        spawn = Spawner(answering(answer))
        async with connected(spawn) as connection:
            with pytest.raises(McpCallFailed, match="no such file"):
                await connection.call("read", {"path": "one"})
        assert spawn.started[0].commands == [Connect(SERVER), Call(1, "read", {"path": "one"})]

    asyncio.run(run())


def test_a_cancelled_call_is_cancelled_in_the_server_too() -> None:
    cancelled: list[int] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        called, ended = asyncio.Event(), asyncio.Event()

        def answer(connector: FakeConnector, command: Command) -> None:
            ready(connector, command)
            if isinstance(command, Call):
                loop.call_soon_threadsafe(called.set)
            if isinstance(command, Cancel):
                cancelled.append(command.id)
                connector.report(Finished(command.id, problem="cancelled"))
                loop.call_soon_threadsafe(ended.set)

        async with connected(Spawner(answer)) as connection:
            call = asyncio.create_task(connection.call("read", {}))
            await called.wait()
            call.cancel()
            await ended.wait()
            assert cancelled == [1]
            assert connection.state == "ready"

    asyncio.run(run())


def test_a_call_that_takes_too_long_fails_and_a_connector_that_does_not_end_it_is_ended() -> None:
    async def run() -> None:
        spawn, pauses = Spawner(ready), Pauses()
        async with connected(spawn, call_limit_s=0.01, pauses=pauses, cancel_s=0.01) as connection:
            with pytest.raises(McpCallFailed, match=r"read gave no result in 0\.01 s"):
                await connection.call("read", {})
            await pauses.next()
            assert SIGKILL in spawn.started[0].signals

    asyncio.run(run())


def test_too_many_calls_and_too_large_arguments_are_refused() -> None:
    async def run() -> None:
        async with connected(Spawner(ready)) as connection:
            with pytest.raises(McpCallFailed, match="larger than 1 MiB"):
                await connection.call("read", {"path": "x" * 2**20})
            calls = [asyncio.create_task(connection.call("read", {})) for _ in range(MAX_CALLS)]
            await asyncio.sleep(0)
            with pytest.raises(McpCallFailed, match="busy with 16 calls"):
                await connection.call("read", {})
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize(
    "line",
    [b"not JSON\n", b'{"type":"tools"}\n', b"x" * (MAX_LINE_BYTES + 2)],
    ids=["not JSON", "fields are missing", "too long"],
)
def test_a_line_that_cannot_be_read_ends_the_connector_and_its_calls(line: bytes) -> None:
    async def run() -> None:
        pauses = Pauses()
        spawn = Spawner(answering(lambda connector, call: _write(connector, line)))
        async with connected(spawn, pauses=pauses) as connection:
            with pytest.raises(McpCallFailed, match="the MCP server files has ended"):
                await connection.call("read", {})
            await pauses.next()
            assert (connection.state, connection.tools) == ("failed", {})

    asyncio.run(run())


def _write(connector: FakeConnector, line: bytes) -> None:
    try:
        connector.write(line)
    except OSError:  # the host has closed its end
        connector.end()


def test_new_attempts_come_after_longer_and_longer_pauses_until_one_succeeds() -> None:
    attempts = 0

    def answer(connector: FakeConnector, command: Command) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 9:
            connector.report(ListChanged([TOOL], []))
        else:
            connector.report(Failed("refuses"))
        connector.end()

    async def run() -> None:
        pauses = Pauses()
        async with connected(Spawner(answer), pauses=pauses) as connection:
            seen: list[float] = []
            for _ in range(10):
                seen.append(await pauses.next())
                pauses.end()
            assert seen == [2, 4, 8, 16, 32, 60, 60, 60, 1, 2]
            assert connection.state == "failed"

    asyncio.run(run())


def test_a_server_that_has_failed_tells_its_reason_until_it_is_ready() -> None:
    connectors: list[FakeConnector] = []

    async def run() -> None:
        loop, pauses, again = asyncio.get_running_loop(), Pauses(), asyncio.Event()

        def answer(connector: FakeConnector, _: Command) -> None:
            connectors.append(connector)
            if len(connectors) == 1:
                connector.report(Failed("refuses"))
                connector.end()
            else:
                loop.call_soon_threadsafe(again.set)

        async with connected(Spawner(answer), pauses=pauses) as connection:
            pauses.end()
            await again.wait()
            assert (connection.state, connection.problem) == ("failed", "refuses")
            with pytest.raises(McpCallFailed, match="is not ready: it refuses"):
                await connection.call("read", {})
            connectors[1].report(ListChanged([TOOL], []))
            while connection.state != "ready":
                await asyncio.sleep(0)

    asyncio.run(run())


def test_what_users_see_of_a_failure_has_no_command_no_secret_and_no_stderr(caplog: pytest.LogCaptureFixture) -> None:
    def answer(connector: FakeConnector, _: Command) -> None:
        connector.write_error("the key secret-token is wrong\x1b[2J")
        connector.report(Failed("has ended (exit status 1)"))
        connector.end()

    async def run() -> None:
        async with connected(Spawner(answer)) as connection:
            assert connection.problem == "has ended (exit status 1)"
            with pytest.raises(McpCallFailed) as raised:
                await connection.call("read", {})
            assert "secret" not in str(raised.value)

    asyncio.run(run())
    assert "the key secret-token is wrong\\x1b[2J" in caplog.text
