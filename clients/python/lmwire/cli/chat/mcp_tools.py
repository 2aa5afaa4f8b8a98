"""Tools of MCP servers in a conversation: which calls the person allows, and their results."""

import asyncio
import json
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import lmwire
from lmwire.mcp import McpCallFailed, McpServerConfig, McpServers
from lmwire_protocol.printable import one_line, printable

_REFUSED: Final = "The user has refused this call."
_STOPPED: Final = "The user has stopped this call."
_ANSWERS: Final = {"y": True, "yes": True, "n": False, "no": False, "": False}
_ALWAYS: Final = ("a", "always")
Ask = Callable[[str], str | None]
"""Asks the person a question, and returns the answer; None if there is none."""


class McpTools:
    """The tools of MCP servers. Their event loop runs only while a method waits, so that it handles Ctrl-C.

    Args:
        servers: The servers.
        allowed: Names of servers, and of tools as the model has them, whose calls need no question.
    """

    def __init__(self, servers: Sequence[McpServerConfig], allowed: Collection[str]) -> None:
        self._servers = McpServers(servers)
        self._allowed = {*allowed}
        self._runner = asyncio.Runner()

    def start(self) -> list[lmwire.ToolDict]:
        """Start the servers, and return their tools once all have listed theirs. Problems go to stderr."""
        self._runner.run(self._start())
        tools: list[lmwire.ToolDict] = []
        for status in self._servers.statuses():
            problems = [f"the server {status.problem}"] if status.problem else status.left_out
            for problem in problems:
                print(f"lmwire: MCP server {status.name}: {printable(problem)}", file=sys.stderr)
            for tool in status.tools:
                function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                tools.append({"type": "function", "function": function})  # pyright: ignore[reportArgumentType]
        return tools

    def close(self) -> None:
        """End the servers."""
        with self._runner:
            self._runner.run(self._servers.__aexit__(None, None, None))

    def has(self, name: str) -> bool:
        """Return whether a tool of this name is one of a server's."""
        return any(tool.name == name for status in self._servers.statuses() for tool in status.tools)

    def answer(self, call: lmwire.ToolCall, ask: Ask | None) -> str:
        """Return the result of a call for the model: that of the tool, or that it was refused.

        Args:
            call: The call, whose tool is one of a server's.
            ask: Asks the person for calls that are not allowed yet; None if nobody can be asked.
        """
        if not self._may_run(call, ask):
            return _REFUSED
        try:
            return self._runner.run(self._call(call.name, call.arguments))
        except McpCallFailed as error:
            return f"Error: {error}"
        except (asyncio.CancelledError, KeyboardInterrupt):
            return _STOPPED

    def _may_run(self, call: lmwire.ToolCall, ask: Ask | None) -> bool:
        server = call.name.partition("__")[0]
        if self._allowed & {call.name, server}:
            return True
        if ask is None:
            problem = f"{one_line(call.name)} was not called: --allow-tool {one_line(call.name)} allows it"
            print(f"lmwire: {problem}", file=sys.stderr)
            return False
        answer: Any = None
        while answer not in (*_ANSWERS, *_ALWAYS):
            answer = (ask(f"Call {_shown(call)}? [y]es, [a]lways, [n]o: ") or "").strip().lower()
        if answer in _ALWAYS:
            self._allowed.add(call.name)
        return answer in _ALWAYS or _ANSWERS[answer]

    async def _start(self) -> None:
        await self._servers.__aenter__()
        await self._servers.settled()

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        return (await self._servers.call(name, arguments)).text


def _shown(call: lmwire.ToolCall) -> str:
    return one_line(f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})")
