"""The connection to one MCP server, as its host sees it: a connector process, which is replaced after it has ended."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from signal import SIGKILL
from typing import Any, Final, Literal

import msgspec

from lmwire_protocol.printable import printable

from ..child_process import python_command
from ..transport.child import Child, Spawn, spawn_process
from .config import McpServerConfig
from .messages import (
    MAX_ARGUMENTS_BYTES,
    MAX_LINE_BYTES,
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

MAX_CALLS: Final = 16
"""Most calls of one server at once."""
_START_S: Final = 120.0
"""Time for a server to list its tools, in seconds. The first start of a program may install it."""
_EXIT_S: Final = 5.0
"""Time for a connector to exit after its stdin has ended, in seconds."""
_CANCEL_S: Final = 10.0
"""Time for a connector to confirm that a call has ended, in seconds."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_STDERR_BYTES: Final = 2048
State = Literal["starting", "ready", "failed"]
_log = logging.getLogger("lmwire")


class McpCallFailed(Exception):
    """A call without a result. The message is a sentence for the user and for the model."""


class Connection:
    """The connection to one server.

    Args:
        server: The server.
        call_limit_s: Longest time of a call, in seconds.
        command: The command that runs a connector.
        spawn: Starts that command.
        sleep: Waits for a number of seconds.
        cancel_s: Time for a connector to confirm that a call has ended, in seconds.
    """

    def __init__(
        self,
        server: McpServerConfig,
        call_limit_s: float,
        *,
        command: Sequence[str] = (),
        spawn: Spawn = spawn_process,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        cancel_s: float = _CANCEL_S,
    ) -> None:
        self.server = server
        self.state: State = "starting"
        self.problem = ""
        """Reason for which the connection failed; empty without one."""
        self.tools: dict[str, McpTool] = {}
        self.left_out: list[str] = []
        """Sentences about tools that cannot be offered."""
        self._call_limit_s, self._cancel_s = call_limit_s, cancel_s
        self._command = tuple(command) or python_command("lmwire.mcp.connector")
        self._spawn, self._sleep = spawn, sleep
        self._child: Child | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._calls: dict[int, asyncio.Future[McpResult]] = {}
        self._unconfirmed: dict[int, asyncio.TimerHandle] = {}
        self._last_id = 0
        self._outcome = ""
        """Reason for which the connector in work ends."""
        self._changed = asyncio.Event()
        self._logged = ""

    async def keep(self) -> None:
        """Connect, and connect again after each end, with longer and longer pauses, until this task is cancelled."""
        pause_s = _FIRST_PAUSE_S
        while True:
            was_ready = await self._run()
            pause_s = _FIRST_PAUSE_S if was_ready else min(2 * pause_s, _LONGEST_PAUSE_S)
            self._set("failed")  # until it is ready, so that users can read the reason
            await self._sleep(pause_s)

    async def settled(self) -> None:
        """Wait until the server is ready, or has failed."""
        while self.state == "starting":
            await self._changed.wait()

    async def call(self, tool: str, arguments: dict[str, Any]) -> McpResult:
        """Return the result of a tool. If this task is cancelled, so is the call.

        Args:
            tool: The server's name of the tool.
            arguments: Its arguments.

        Raises:
            McpCallFailed: The call has no result.
        """
        name = self.server.name
        if self.state != "ready":
            reason = self.problem if self.state == "failed" else "is starting"
            raise McpCallFailed(f"the MCP server {name} is not ready: it {reason}")
        if len(self._calls) >= MAX_CALLS:
            raise McpCallFailed(f"the MCP server {name} is busy with {MAX_CALLS} calls: wait for one of them")
        if len(msgspec.json.encode(arguments)) > MAX_ARGUMENTS_BYTES:
            raise McpCallFailed(f"the arguments of {tool} are larger than {MAX_ARGUMENTS_BYTES // 2**20} MiB")
        self._last_id += 1
        id = self._last_id
        future = self._calls[id] = asyncio.get_running_loop().create_future()
        self._write(Call(id, tool, arguments))
        try:
            async with asyncio.timeout(self._call_limit_s):
                return await future
        except TimeoutError:
            raise McpCallFailed(f"{tool} gave no result in {self._call_limit_s:g} s, and was stopped") from None
        finally:
            del self._calls[id]
            if future.cancelled():
                self._cancel(id)

    async def _run(self) -> bool:
        """Run one connector to its end, and return whether it was ready."""
        self._outcome = "has ended"
        try:
            child = self._child = await asyncio.to_thread(self._spawn, self._command)
        except OSError as error:
            self.problem = f"cannot be started: {error.strerror}"
            return False
        loop = asyncio.get_running_loop()
        reports = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        reading = asyncio.create_task(_read_tail(child))
        try:
            reader, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reports), child.stdout)
            self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, child.stdin)
            self._write(Connect(self.server))
            starting = loop.call_later(_START_S, self._give_up)
            try:
                await self._read(reports, starting)
            finally:
                starting.cancel()
                reader.close()
        except (msgspec.MsgspecError, ValueError, OSError) as error:
            _log.warning("MCP server %s: its connector failed: %s", self.server.name, type(error).__name__)
        finally:
            await self._end(child)
            tail = await reading
        self.problem = self._outcome
        if self.problem != self._logged:  # it may fail in the same way at each attempt
            self._logged = self.problem
            end = f"; its stderr ends with:\n{printable(tail)}" if tail.strip() else ""
            _log.warning("MCP server %s %s%s", self.server.name, self.problem, end)
        return self.state == "ready"

    async def _read(self, reports: asyncio.StreamReader, starting: asyncio.TimerHandle) -> None:
        while line := await reports.readline():
            report: Report = msgspec.json.decode(line, type=Report)
            match report:
                case ListChanged(tools, left_out):
                    starting.cancel()
                    self.tools, self.left_out = {tool.name: tool for tool in tools}, left_out
                    for sentence in left_out:
                        _log.warning("MCP server %s: a tool is left out: %s", self.server.name, sentence)
                    self._logged = ""
                    self._set("ready")
                case Finished() as finished:
                    self._finish(finished)
                case Failed(problem):
                    self._outcome = problem

    def _finish(self, finished: Finished) -> None:
        if timer := self._unconfirmed.pop(finished.id, None):
            timer.cancel()
        future = self._calls.get(finished.id)
        if future is None or future.done():
            return
        if finished.result:
            future.set_result(finished.result)
        else:
            future.set_exception(McpCallFailed(finished.problem))

    def _cancel(self, id: int) -> None:
        """End a call. A connector that does not confirm it is stuck, and is ended."""
        self._write(Cancel(id))
        self._unconfirmed[id] = asyncio.get_running_loop().call_later(self._cancel_s, self._kill)

    def _give_up(self) -> None:
        self._outcome = f"has not listed its tools in {_START_S:g} s"
        self._kill()

    def _kill(self) -> None:
        if self._child:
            self._child.signal(SIGKILL)

    def _write(self, command: Command) -> None:
        if self._writer and not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(command) + b"\n")

    async def _end(self, child: Child) -> None:
        """End a connector and all that it has started. Calls that wait for it fail."""
        if self._writer:
            self._writer.close()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(McpCallFailed(f"the MCP server {self.server.name} {self._outcome}"))
        for timer in self._unconfirmed.values():
            timer.cancel()
        self._unconfirmed.clear()
        self._writer = self._child = None
        exiting = asyncio.create_task(asyncio.to_thread(child.wait))
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_S):
                await asyncio.shield(exiting)
        child.signal(SIGKILL)
        await exiting

    def _set(self, state: State) -> None:
        if state == "failed":
            self.tools = {}
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()


async def _read_tail(child: Child) -> str:
    """Return the end of what a child writes to stderr."""
    stderr = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stderr), child.stderr)
    tail = b""
    while part := await stderr.read(_STDERR_BYTES):
        tail = (tail + part)[-_STDERR_BYTES:]
    return tail.decode(errors="replace")
