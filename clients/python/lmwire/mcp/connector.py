"""The program that holds the connection to one MCP server: `python -m lmwire.mcp.connector`.

Its host writes lines to its stdin and reads lines from its stdout; `messages` has both. It leads a process group, which
it ends when stdin ends: the server's program is in it. What the server sends is read here, so this process has limits
of memory, and of processor time in which its event loop stands still. One that exceeds them ends, and its server too.
"""

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

import httpx2
import msgspec
from mcp import Client, MCPError
from mcp.client._transport import Transport, TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolListChangedNotification,
)

from lmwire_protocol.printable import one_line

from .config import McpServerConfig
from .messages import (
    MAX_LINE_BYTES,
    MAX_PROBLEM_CHARACTERS,
    MAX_RESULT_CHARACTERS,
    MAX_TOOL_BYTES,
    MAX_TOOLS,
    MAX_TOOLS_BYTES,
    Call,
    Cancel,
    Command,
    Connect,
    Failed,
    Finished,
    ListChanged,
    McpResult,
    McpTool,
    Report,
)
from .stdio_transport import MAX_MESSAGE_BYTES, ServerEnded, program_streams

_MEMORY_BYTES: Final = 2**30
"""Maximum address space, in bytes. macOS does not enforce it."""
_STUCK_CPU_S: Final = 20.0
"""Processor time after which a process whose event loop does not turn is ended, in seconds."""
_TICK_S: Final = 1.0
_MAX_PAGES: Final = 32
_MAX_LEFT_OUT: Final = 16
_TOOL_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_MAX_TOOL_NAME: Final = 64
_SESSION_ENDED: Final = "Session terminated"
"""The message of the package `mcp` for an HTTP server that does not know the session any more."""
_UNAUTHORIZED: Final = (401, 403)


class Connector:
    """A connection, and the calls on it.

    Args:
        client: The client, whose context is entered.
        commands: The host's commands.
        report: Reports to the host.
    """

    def __init__(self, client: Client, commands: asyncio.StreamReader, report: Callable[[Report], None]) -> None:
        self._client, self._commands, self._report = client, commands, report
        self._calls: dict[int, asyncio.Task[None]] = {}

    async def report_tools(self) -> None:
        """Report the server's tools, as far as they can be offered."""
        listed: list[Tool] = []
        cursor = None
        for _ in range(_MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None or len(listed) > MAX_TOOLS:
                break
        self._report(select_tools(listed))

    async def serve(self) -> None:
        """Handle the host's commands until they end."""
        while line := await self._commands.readline():
            match msgspec.json.decode(line, type=Command):
                case Call() as call:
                    self._calls[call.id] = asyncio.create_task(self._call(call))
                case Cancel(id) if id in self._calls:
                    self._calls[id].cancel()
                case _:
                    pass

    async def _call(self, call: Call) -> None:
        finished = Finished(call.id, problem="the call was cancelled")
        try:
            result = await self._client.call_tool(call.tool, call.arguments)
            finished = Finished(call.id, McpResult(text=text_of(result), is_error=result.is_error))
        except MCPError as error:
            has_ended = error.code == CONNECTION_CLOSED
            finished = Finished(call.id, problem="the server has ended" if has_ended else _shortened(error.message))
            if error.message == _SESSION_ENDED:
                self._commands.feed_eof()  # the host connects again
        except Exception as error:  # whatever the client finds wrong with the answer
            _log(error)
            finished = Finished(call.id, problem="the server's answer cannot be read")
        finally:
            del self._calls[call.id]
            self._report(finished)


def select_tools(listed: list[Tool]) -> ListChanged:
    """Return the tools that can be offered, and sentences about the others.

    Args:
        listed: The tools as the server lists them.
    """
    selected: dict[str, McpTool] = {}
    left_out: list[str] = []
    total = 0
    for tool in listed:
        found = McpTool(name=tool.name, description=tool.description or "", parameters=tool.input_schema)
        size = _size_of(found)
        total += size
        if problem := _problem_of(found, size, total, selected):
            left_out.append(f"{one_line(tool.name[:_MAX_TOOL_NAME])}: {problem}")
            total -= size
        else:
            selected[tool.name] = found
    if len(left_out) > _MAX_LEFT_OUT:
        left_out = [*left_out[:_MAX_LEFT_OUT], f"and {len(left_out) - _MAX_LEFT_OUT} more"]
    return ListChanged([*selected.values()], left_out)


def _size_of(tool: McpTool) -> int:
    try:
        return len(msgspec.json.encode(tool))
    except (ValueError, TypeError, RecursionError):  # lone surrogates, or deep nesting
        return MAX_TOOL_BYTES + 1


def _problem_of(tool: McpTool, size: int, total: int, selected: dict[str, McpTool]) -> str:
    if not tool.name or len(tool.name) > _MAX_TOOL_NAME or not _TOOL_NAME.issuperset(tool.name):
        return f"its name is not 1 to {_MAX_TOOL_NAME} letters, digits, dots, dashes and underscores"
    if tool.name in selected:
        return "another tool has the same name"
    if size > MAX_TOOL_BYTES:
        return f"its definition is larger than {MAX_TOOL_BYTES // 1024} KiB"
    if len(selected) >= MAX_TOOLS or total > MAX_TOOLS_BYTES:
        return f"a server may have {MAX_TOOLS} tools of {MAX_TOOLS_BYTES // 2**20} MiB together"
    return ""


def text_of(result: CallToolResult) -> str:
    """Return a result as text, which is what a model reads. Images and sounds are named, and not shown.

    Args:
        result: The result. If it is too long, its end is cut off.
    """
    text = "\n".join(map(_text_of_block, result.content))
    if not result.content and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    text = text.encode(errors="replace").decode()  # lone surrogates cannot be sent
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return f"{text[:MAX_RESULT_CHARACTERS]}\n[The rest of {len(text):,} characters is left out.]"


def _text_of_block(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type}: {block.mime_type}, which cannot be shown to the model]"
        case ResourceLink():
            return f"[resource: {block.uri}]"
        case EmbeddedResource(resource=TextResourceContents() as content):
            return content.text
        case EmbeddedResource():
            return f"[resource: {block.resource.uri}, which is not text]"


@asynccontextmanager
async def _transport(server: McpServerConfig, on_started: Callable[[], None]) -> AsyncGenerator[TransportStreams]:
    async with program_streams(server) if server.command else _http_streams(server) as streams:
        on_started()
        yield streams


@asynccontextmanager
async def _http_streams(server: McpServerConfig) -> AsyncGenerator[TransportStreams]:
    # A compressed body could expand beyond any limit.
    headers = {**server.headers, "accept-encoding": "identity"}
    timeout = httpx2.Timeout(30.0, read=None)  # the host ends calls that take too long
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, transport=_LimitedTransport()) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _LimitedTransport(httpx2.AsyncHTTPTransport):
    """HTTP in which a server's JSON has a limit. A stream of events may go on: each event has one."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.status_code in _UNAUTHORIZED:
            await response.aclose()
            raise ServerEnded(f"answers with status {response.status_code}: give its key in `headers`")
        if "content-encoding" in response.headers:
            await response.aclose()
            raise ServerEnded("sends compressed answers, although it is asked for plain ones")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _LimitedStream(response.stream)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        count = 0
        async for part in self._stream:
            count += len(part)
            if count > MAX_MESSAGE_BYTES:
                raise ServerEnded(f"has sent a message of more than {MAX_MESSAGE_BYTES // 2**20} MiB")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def connect(
    server: McpServerConfig,
    commands: asyncio.StreamReader,
    report: Callable[[Report], None],
    on_started: Callable[[], None] = lambda: None,
) -> None:
    """Connect to a server, and serve its host until the commands end. A failure is reported.

    Args:
        server: The server.
        commands: The host's commands.
        report: Reports to the host.
        on_started: Is called once the server's program has started, before anything is read from it.
    """
    try:
        await _connect(_transport(server, on_started), commands, report)
    except BaseException as error:
        _log(error)
        report(Failed(_sentence(error)))


async def _connect(transport: Transport, commands: asyncio.StreamReader, report: Callable[[Report], None]) -> None:
    changed = asyncio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async def follow_changes(connector: Connector) -> None:
        while await changed.wait():
            changed.clear()
            await connector.report_tools()
            await asyncio.sleep(_TICK_S)  # a server may report changes without end

    async with Client(transport, message_handler=note, cache=None) as client:
        connector = Connector(client, commands, report)
        await connector.report_tools()
        following = asyncio.create_task(follow_changes(connector))
        try:
            await connector.serve()
        finally:
            following.cancel()


def _limit_memory() -> None:
    """Limit the memory of this process. Programs that it starts keep the limit that it had."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # the system's own limit is lower
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, hard))


async def _stay_alive() -> None:
    """Move the end of this process ahead while its event loop turns. The system ends one that is stuck."""
    while True:
        signal.setitimer(signal.ITIMER_PROF, _STUCK_CPU_S)
        await asyncio.sleep(_TICK_S)


async def _main() -> None:
    staying = asyncio.create_task(_stay_alive())
    commands = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    given = msgspec.json.decode(await commands.readline(), type=Connect)
    try:
        await connect(given.server, commands, _report, _limit_memory)
    finally:
        staying.cancel()


def _sentence(error: BaseException) -> str:
    """Return why a connection has ended, without what the server's address or headers hold."""
    match error := _first_cause(error):
        case ServerEnded():
            return str(error)
        case MCPError(code=code) if code != PARSE_ERROR:
            return _shortened(f"refuses the connection: {error.message}")
        case OSError():
            return f"cannot be started: {error.strerror or type(error).__name__}"
        case MemoryError():
            return f"has sent what needs more than {_MEMORY_BYTES // 2**20:,} MiB of memory"
        case httpx2.HTTPError():
            return f"cannot be reached ({type(error).__name__})"
        case _:
            return f"does not keep to the protocol ({type(error).__name__})"


def _first_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _shortened(text: str) -> str:
    text = one_line(text.encode(errors="replace").decode())
    return text if len(text) <= MAX_PROBLEM_CHARACTERS else f"{text[:MAX_PROBLEM_CHARACTERS]}…"


def _log(error: BaseException) -> None:
    error = _first_cause(error)
    print(_shortened(f"{type(error).__name__}: {error}"), file=sys.stderr)


def _report(report: Report) -> None:
    line = memoryview(msgspec.json.encode(report) + b"\n")
    while line:
        line = line[os.write(_REPORTS, line) :]


_REPORTS: Final = 1


def main() -> None:
    """Serve one host, and end with the whole process group."""
    logging.disable()  # the package writes all that a server sends
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is sent to the group, and this process still waits for it
    try:
        asyncio.run(_main())
    finally:
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
