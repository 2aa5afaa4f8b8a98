"""Tools of a response request, and the choice among them."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from ...errors import invalid_field
from ...http.decoding import convert
from ...http.unknown_fields import UnknownFields
from ...limits import JsonObject, ShortList, Tools


class _Tool(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    name: str
    description: str | None = None
    defer_loading: bool | None = None
    """Ignored: the model always sees all tools."""
    allowed_callers: ShortList[Literal["direct"]] | None = None


class FunctionTool(_Tool, tag="function", kw_only=True):
    """A function that the model may call."""

    parameters: JsonObject | None = None
    """A JSON Schema."""
    strict: bool | None = None
    """Make the arguments follow the schema, token by token."""
    output_schema: JsonObject | None = None
    """Ignored: results of calls are not checked."""


class AnyText(Struct, tag_field="type", tag="text", kw_only=True, forbid_unknown_fields=True):
    """Any text."""


class Grammar(Struct, tag_field="type", tag="grammar", kw_only=True, forbid_unknown_fields=True):
    """Text that follows a grammar. The model reads the grammar; it is not enforced."""

    syntax: Literal["lark", "regex"]
    definition: str


class CustomTool(_Tool, tag="custom", kw_only=True):
    """A tool whose input is a text."""

    format: AnyText | Grammar | None = None


class Namespace(Struct, tag_field="type", tag="namespace", kw_only=True, forbid_unknown_fields=True):
    """Tools that belong together, such as those of one MCP server."""

    name: str
    description: str | None = None
    tools: Tools[FunctionTool | CustomTool]


Tool: TypeAlias = FunctionTool | CustomTool | Namespace


class _Choice(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    name: str
    namespace: str | None = None


class ChooseFunction(_Choice, tag="function"):
    """The function that the model must call."""


class ChooseCustom(_Choice, tag="custom"):
    """The custom tool that the model must call."""


class AllowedTool(Struct, kw_only=True):
    """One of `tools`. Those of types that are not served are ignored."""

    type: str
    name: str = ""
    namespace: str | None = None


class ChooseAllowed(Struct, tag_field="type", tag="allowed_tools", kw_only=True, forbid_unknown_fields=True):
    """The tools that the model sees."""

    mode: Literal["auto", "required"]
    tools: Tools[AllowedTool]


Mode: TypeAlias = Literal["none", "auto", "required"]
ToolChoice: TypeAlias = Mode | ChooseFunction | ChooseCustom | ChooseAllowed

_TOOL_TYPES = ("function", "custom", "namespace")
_CHOICE_TYPES = ("function", "custom", "allowed_tools")


class ToolsField(Struct):
    """The part of a body with the tools, so that errors name the field."""

    tools: Tools[Tool | None]


class ChoiceField(Struct):
    """The part of a body with the choice, so that errors name the field."""

    tool_choice: ToolChoice


def read_tools(tools: Sequence[dict[str, Any]], unknown: UnknownFields) -> list[Tool | None]:
    """Return the tools of a request. None takes the place of those that only another service can run.

    Args:
        tools: The tools, as decoded JSON. One without a type is a function.
        unknown: Collects unknown fields and the tools that are left out.

    Raises:
        ApiError: A tool is invalid, or must not be left out.
    """
    return convert({"tools": served_tools(tools, "tools", unknown)}, ToolsField, unknown).tools


def served_tools(tools: Sequence[Any], path: str, unknown: UnknownFields) -> list[Any]:
    """Return tools with their types, as decoded JSON. None takes the place of those that are left out.

    Args:
        tools: The tools.
        path: Their path in the request.
        unknown: Collects the tools that are left out.

    Raises:
        ApiError: A tool must not be left out.
    """
    return [_with_type(tool, f"{path}[{place}]", unknown) for place, tool in enumerate(tools)]


def read_choice(choice: str | dict[str, Any], unknown: UnknownFields) -> ToolChoice:
    """Return the choice of a request.

    Args:
        choice: The choice, as decoded JSON.
        unknown: Collects unknown fields.

    Raises:
        ApiError: The choice is invalid, or is a tool that is not served.
    """
    if isinstance(choice, dict) and isinstance(kind := choice.get("type"), str) and kind not in _CHOICE_TYPES:
        problem = f"must be one of {', '.join(_CHOICE_TYPES)}, not {kind!r}: tools of other types are not served"
        raise invalid_field(f"tool_choice.type: {problem}", "tool_choice.type")
    return convert({"tool_choice": choice}, ChoiceField, unknown).tool_choice


def _with_type(tool: Any, path: str, unknown: UnknownFields) -> Any:
    if not isinstance(tool, dict):
        return tool
    tool = cast(dict[str, Any], tool)
    kind = tool.get("type", "function")
    if isinstance(kind, str) and kind not in _TOOL_TYPES:
        unknown.leave_out(path, kind)
        return None
    return {"type": kind, **tool}
