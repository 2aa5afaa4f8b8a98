"""The MCP servers of a host, and their tools by names that are unique among all of them."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from .config import McpServerConfig
from .connection import Connection, McpCallFailed, State
from .messages import McpResult, McpTool

CALL_LIMIT_S: Final = 120.0
_SEPARATOR: Final = "__"
"""Stands between the names of a server and of its tool. A server's name has none."""
_DIGEST_BYTES: Final = 8


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool as a model gets it."""

    name: str
    """`SERVER__TOOL`, which is unique among all servers."""
    tool: str
    """The server's name of it."""
    description: str
    parameters: dict[str, Any]
    """The JSON Schema of its arguments."""
    digest: str
    """Changes with the definition: a permission for one definition is none for another."""


class McpServerStatus(Struct, frozen=True, kw_only=True):
    """A server as users see it. Its command, environment and headers are the operator's alone."""

    name: str
    state: State
    problem: str
    """Why a server has failed; empty otherwise."""
    tools: list[OfferedTool]
    left_out: list[str]
    """Sentences about tools that cannot be offered."""


class McpServers(AbstractAsyncContextManager["McpServers"]):
    """The servers of a config file. Entering the context starts them, and exiting ends them.

    Args:
        servers: The servers.
        call_limit_s: Longest time of a call, in seconds.
    """

    def __init__(self, servers: Sequence[McpServerConfig], call_limit_s: float = CALL_LIMIT_S) -> None:
        self.connections = {server.name: Connection(server, call_limit_s) for server in servers}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        """Start the servers, without waiting for them."""
        self._tasks = [asyncio.create_task(connection.keep()) for connection in self.connections.values()]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the servers and all that they have started."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until each server is ready or has failed."""
        await asyncio.gather(*(connection.settled() for connection in self.connections.values()))

    def statuses(self) -> list[McpServerStatus]:
        """Return the servers with their tools, as they are now."""
        return [_status(connection) for connection in self.connections.values()]

    async def call(self, name: str, arguments: dict[str, Any]) -> McpResult:
        """Return the result of a tool.

        Args:
            name: `SERVER__TOOL`.
            arguments: The tool's arguments.

        Raises:
            KeyError: No server has the tool.
            McpCallFailed: The tool gave no result. The message is for the user and the model.
        """
        server, _, tool = name.partition(_SEPARATOR)
        connection = self.connections[server]
        if connection.state == "ready" and tool not in connection.tools:
            raise KeyError(name)
        return await connection.call(tool, arguments)


def _status(connection: Connection) -> McpServerStatus:
    return McpServerStatus(
        name=connection.server.name,
        state=connection.state,
        problem=connection.problem if connection.state == "failed" else "",
        tools=[_offer(connection.server.name, tool) for tool in connection.tools.values()],
        left_out=connection.left_out,
    )


def _offer(server: str, tool: McpTool) -> OfferedTool:
    return OfferedTool(
        name=f"{server}{_SEPARATOR}{tool.name}",
        tool=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        digest=hashlib.sha256(msgspec.json.encode(tool)).hexdigest()[: 2 * _DIGEST_BYTES],
    )


__all__ = ["CALL_LIMIT_S", "McpCallFailed", "McpServerStatus", "McpServers", "OfferedTool"]
