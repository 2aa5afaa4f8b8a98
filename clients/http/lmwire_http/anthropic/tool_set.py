"""The tools that the model may call: those of the request, and those that the conversation has made available.

A tool with `defer_loading` is not in the prompt until a `tool_reference` names it: agents have hundreds of tools, and
find them with a tool of their own. Such tools come after all others, in the order of the references, so that the start
of the prompt stays as it is cached.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from lmwire import ToolDict

from ..errors import invalid_field
from ..http.unknown_fields import UnknownFields
from .request import (
    ChooseNone,
    ChooseTool,
    CountTokensRequest,
    Message,
    Tool,
    ToolAddition,
    ToolDefinition,
    ToolReference,
    ToolRemoval,
    ToolResult,
)

_CLIENT_TYPES: Final = (None, "custom")
_TOOL_SEARCH: Final = "tool_search_tool_"
"""Start of the types of Anthropic's own tool search. Without it the model could not find deferred tools."""
_TOOL: Final = re.compile(r"^tools\[(\d+)\](?:\.function\b(?:\.parameters\b)?)?")
_SCHEMA: Final = ".function.parameters"


class _PlacedTool(NamedTuple):
    """A tool and its path in the request."""

    place: str
    tool: Tool


class ToolSet:
    """The tools of a request.

    Args:
        body: The request's body.
        unknown: Reports the tools that are left out, since only Anthropic's servers run them.

    Raises:
        ApiError: A tool is invalid, or the choice is a tool that is left out.
    """

    def __init__(self, body: CountTokensRequest, unknown: UnknownFields) -> None:
        self._available: dict[str, _PlacedTool] = {}
        self._deferred: dict[str, _PlacedTool] = {}
        self._left_out: dict[str, str] = {}
        """Types of the tools that are left out, by name."""
        for number, tool in enumerate(body.tools or ()):
            self._add(tool, f"tools[{number}]", unknown)
        if any(type.startswith(_TOOL_SEARCH) for type in self._left_out.values()):
            self._available |= self._deferred
        for number, message in enumerate(body.messages):
            self._apply_changes(message, f"messages[{number}]")
        if isinstance(body.tool_choice, ChooseTool):
            self._choose(body.tool_choice.name)
        self._is_shown = not isinstance(body.tool_choice, ChooseNone)

    def options(self) -> dict[str, Any]:
        """Return the option `tools` of the client library; empty without tools."""
        if not (self._available and self._is_shown):
            return {}
        return {"tools": [_wire_tool(placed.tool) for placed in self._available.values()]}

    def client_field(self, field: str) -> str | None:
        """Return the client's path of a worker's field; None if it is not in a tool."""
        places = [placed.place for placed in self._available.values()]
        if not (found := _TOOL.match(field)) or int(found[1]) >= len(places):
            return None
        schema = ".input_schema" if found[0].endswith(_SCHEMA) else ""
        return places[int(found[1])] + schema + field[found.end() :]

    def _add(self, tool: Tool, place: str, unknown: UnknownFields) -> None:
        if tool.type not in _CLIENT_TYPES:
            unknown.leave_out(place, tool.type or "")
            self._left_out[tool.name] = tool.type or ""
            return
        _check(tool, place)
        if tool.name in self._available or tool.name in self._deferred:
            raise invalid_field(f"{place}.name: an earlier tool has this name, too", f"{place}.name")
        tools = self._deferred if tool.defer_loading else self._available
        tools[tool.name] = _PlacedTool(place, tool)

    def _apply_changes(self, message: Message, path: str) -> None:
        for place, change in _tool_changes(message, path):
            match change:
                case ToolReference():
                    self._make_available(change.tool_name)
                case ToolDefinition():
                    self._define(change.definition, f"{place}.tool.definition")
                case ToolRemoval():
                    name = change.tool.name
                    if name in self._available:
                        self._deferred[name] = self._available.pop(name)

    def _define(self, tool: Tool, place: str) -> None:
        _check(tool, place)
        self._available[tool.name] = _PlacedTool(place, tool)

    def _choose(self, name: str) -> None:
        if name in self._left_out and name not in self._available:
            problem = f"this server does not run tools of the type {self._left_out[name][:64]!r}"
            raise invalid_field(f"tool_choice.name: {problem}; choose a tool of your own", "tool_choice.name")
        self._make_available(name)

    def _make_available(self, name: str) -> None:
        if name in self._deferred:
            self._available.setdefault(name, self._deferred[name])


def _tool_changes(message: Message, path: str) -> Iterator[tuple[str, ToolReference | ToolDefinition | ToolRemoval]]:
    """Yield the changes that a message makes to the tools, each with the path of its block."""
    if isinstance(message.content, str):
        return
    for number, block in enumerate(message.content):
        place = f"{path}.content[{number}]"
        match block:
            case ToolResult():
                inner = block.content if isinstance(block.content, list) else []
                yield from ((place, each) for each in inner if isinstance(each, ToolReference))
            case ToolAddition():
                tool = block.tool
                yield place, tool if isinstance(tool, ToolDefinition) else ToolReference(tool_name=tool.name)
            case ToolRemoval():
                yield place, block
            case _:
                pass


def _check(tool: Tool, place: str) -> None:
    if not tool.name:
        raise invalid_field(f"{place}.name: is required", f"{place}.name")
    if tool.input_schema is None:
        raise invalid_field(f"{place}.input_schema: is required; give a JSON schema", f"{place}.input_schema")


def _wire_tool(tool: Tool) -> ToolDict:
    examples = "".join(f"\nExample of its input: {json.dumps(example)}" for example in tool.input_examples or ())
    function: Any = {
        "name": tool.name,
        "description": (tool.description or "") + examples,
        "parameters": tool.input_schema,
    }
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}
