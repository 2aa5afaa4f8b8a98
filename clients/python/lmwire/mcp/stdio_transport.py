"""The transport to a program that speaks MCP over its pipes, for the client of the package `mcp`.

The package has one of its own, whose programs lead process groups and whose lines have no limit. Here the program stays
in the connector's group, which ends as a whole, and a line that is too long ends the connection.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from .config import McpServerConfig

MAX_MESSAGE_BYTES: Final = 8 * 1024 * 1024
EXIT_S: Final = 2.0
"""Time for a program to exit after its stdin has ended, in seconds."""
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


class ServerEnded(Exception):
    """The program has ended, or has sent what cannot be read."""


@asynccontextmanager
async def program_streams(server: McpServerConfig) -> AsyncGenerator[Streams]:
    """Run a server's program while the context is entered, and yield the streams from and to it.

    Args:
        server: The server's config.

    Raises:
        ServerEnded: The program ended, or sent a line that is too long. An ExceptionGroup has it.
        OSError: The program cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        server.command,
        *server.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=MAX_MESSAGE_BYTES,
        env=get_default_environment() | server.env,
        cwd=server.cwd or None,
    )
    assert process.stdin and process.stdout
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage]()
    async with AsyncExitStack() as stack:
        for stream in (received, incoming, outgoing, to_send):
            await stack.enter_async_context(stream)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_receive, process, received)
                tasks.start_soon(_send, process.stdin, to_send)
                yield incoming, outgoing
                tasks.cancel_scope.cancel()
        finally:
            process.stdin.close()
            with suppress(TimeoutError), anyio.CancelScope(shield=True):
                async with asyncio.timeout(EXIT_S):
                    await process.wait()


async def _receive(
    process: asyncio.subprocess.Process, received: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    assert process.stdout
    try:
        while line := await process.stdout.readline():
            with suppress(ValueError):  # a line of a log on stdout, for example, is not a message
                await received.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
    except ValueError:
        raise ServerEnded(f"has sent a message of more than {MAX_MESSAGE_BYTES // 2**20} MiB") from None
    raise ServerEnded(f"has ended (exit status {await process.wait()})")


async def _send(stdin: asyncio.StreamWriter, to_send: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with suppress(ConnectionError):  # the program has ended, as its stdout shows
        async for each in to_send:
            stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await stdin.drain()
