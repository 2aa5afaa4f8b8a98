"""The lines between a host and a connector: JSON objects, each with its type."""

from typing import Any, Final, TypeAlias

from msgspec import Struct

from .config import McpServerConfig

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""Longest line in either direction, in bytes. Each part of it has a smaller limit."""
MAX_TOOLS: Final = 128
"""Maximum number of tools of a server. Models confuse more."""
MAX_TOOL_BYTES: Final = 64 * 1024
"""Largest definition of a tool, in bytes of JSON."""
MAX_TOOLS_BYTES: Final = 1024 * 1024
"""Largest definitions of all tools of a server together, in bytes of JSON."""
MAX_ARGUMENTS_BYTES: Final = 1024 * 1024
MAX_RESULT_CHARACTERS: Final = 128 * 1024
"""Longest result of a call, in characters. A longer one is cut, and says so."""
MAX_PROBLEM_CHARACTERS: Final = 500


class McpTool(Struct, frozen=True, kw_only=True):
    """A tool of a server."""

    name: str
    """The server's name of it."""
    description: str
    parameters: dict[str, Any]
    """The JSON Schema of its arguments."""


class McpResult(Struct, frozen=True, kw_only=True):
    """Result of a call."""

    text: str
    is_error: bool
    """True if the tool reports that it has failed. The text is then its reason."""


class Connect(Struct, tag="connect"):
    """The first line to a connector: the server to connect to."""

    server: McpServerConfig


class Call(Struct, tag="call"):
    """Calls a tool. A `Finished` with the same id follows in any case."""

    id: int
    tool: str
    arguments: dict[str, Any]


class Cancel(Struct, tag="cancel"):
    """Ends a call: nobody waits for its result."""

    id: int


class ListChanged(Struct, tag="tools"):
    """The server's tools: the first line of a connector, and one after each change."""

    tools: list[McpTool]
    left_out: list[str]
    """Sentences about tools that cannot be offered."""


class Finished(Struct, tag="finished"):
    """The end of a call: its result, or the problem with it."""

    id: int
    result: McpResult | None = None
    problem: str = ""


class Failed(Struct, tag="failed"):
    """The last line of a connector: why the connection has ended."""

    problem: str


Command: TypeAlias = Connect | Call | Cancel
Report: TypeAlias = ListChanged | Finished | Failed
