"""The tools of a response request and the choice among them, as functions, which are all that a model can call."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Struct

from lmwire import ToolDict

from ...errors import invalid_field
from ...http.decoding import convert
from ...http.unknown_fields import UnknownFields
from ...inference.options import given_fields
from ...limits import JsonObject, ShortList, Tools
from ..tools import Function, wire_tool

_INPUT: Final = "input"
_SEPARATOR: Final = "__"
_TOOL_FIELD: Final = re.compile(r"^tools\[(\d+)\](?:\.function)?")
_SYNTAXES: Final = {"lark": "Lark grammar", "regex": "regular expression"}


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


class CalledTool(NamedTuple):
    """The tool that a function stands for."""

    name: str
    namespace: str | None = None
    is_custom: bool = False


class _Offered(NamedTuple):
    """A tool of the request."""

    path: str
    """Its path in the request, such as `tools[2].tools[0]`."""
    tool: CalledTool
    function: Function


class ToolSet:
    """The tools that the model sees.

    A function's name in a namespace is `namespace__name`. A custom tool is a function with one argument, `input`.

    Args:
        tools: The tools, by the path of their list in the request. None is one that is left out. Of several tools with
            the same name and namespace, the last one counts.
        choice: The request's choice among them.

    Raises:
        ApiError: Two tools have the same name, or the choice is not one of the tools.
    """

    def __init__(self, tools: Mapping[str, Sequence[Tool | None]], choice: ToolChoice | None = None) -> None:
        flattened = [
            offered
            for path, listed in tools.items()
            for place, tool in enumerate(listed)
            for offered in _flattened(tool, f"{path}[{place}]")
        ]
        self._tools = _by_name(flattened)
        offered = [*{each.function.name: each for each in flattened}.values()]
        self._choice = choice
        self._offered = _allowed(choice, offered, self._tools) if isinstance(choice, ChooseAllowed) else offered

    def options(self) -> dict[str, Any]:
        """Return the tools and the choice as options of the client library."""
        options: dict[str, Any] = {}
        match self._choice:
            case ChooseAllowed(mode=mode):
                options["tool_choice"] = mode
            case ChooseFunction() | ChooseCustom():
                options["tool_choice"] = {"name": function_name(self._choice.name, self._choice.namespace)}
            case None:
                pass
            case mode:
                options["tool_choice"] = mode
        if self._offered:
            options["tools"] = self._wire_tools()
        return options

    def called(self, function: str) -> CalledTool:
        """Return the tool that the model calls by a function's name."""
        return self._tools.get(function) or CalledTool(function)

    def client_field(self, field: str) -> str | None:
        """Return the client's name of a worker's field within the tools; None for other fields."""
        found = _TOOL_FIELD.match(field)
        if not found or int(found[1]) >= len(self._offered):
            return None
        return self._offered[int(found[1])].path + field[found.end() :]

    def _wire_tools(self) -> list[ToolDict]:
        return [wire_tool(offered.function) for offered in self._offered]


def function_name(name: str, namespace: str | None) -> str:
    """Return the name of the function that stands for a tool.

    Args:
        name: The tool's name.
        namespace: The tool's namespace; None without one. It may end with the separator, as those of MCP servers do.
    """
    if not namespace:
        return name
    return namespace.removesuffix(_SEPARATOR) + _SEPARATOR + name


def input_arguments(input: str) -> dict[str, Any]:
    """Return the arguments of the function that stands for a custom tool."""
    return {_INPUT: input}


def input_of(arguments: str) -> str:
    """Return the input of a custom tool from the arguments of a complete call.

    Models do not always follow the schema. The only text of an object with another name is taken as the input, and
    anything else is passed on as it is.
    """
    try:
        members = msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
    if isinstance(text := members.get(_INPUT), str):
        return text
    texts = [value for value in members.values() if isinstance(value, str)]
    return texts[0] if len(texts) == len(members) == 1 else arguments


def _flattened(tool: Tool | None, path: str) -> Iterator[_Offered]:
    match tool:
        case Namespace():
            for place, member in enumerate(tool.tools):
                # The namespace's description is said once, with its first tool.
                yield _offer(member, f"{path}.tools[{place}]", tool.name, tool.description if place == 0 else None)
        case None:
            pass
        case _:
            yield _offer(tool, path)


def _offer(
    tool: FunctionTool | CustomTool, path: str, namespace: str | None = None, heading: str | None = None
) -> _Offered:
    called = CalledTool(tool.name, namespace, isinstance(tool, CustomTool))
    function = _custom_function(tool) if isinstance(tool, CustomTool) else _function(tool)
    function.name = function_name(tool.name, namespace)
    if heading:
        function.description = "\n\n".join(filter(None, (heading, function.description)))
    return _Offered(path, called, function)


def _function(tool: FunctionTool) -> Function:
    return Function(**given_fields(tool, "name", "description", "parameters", "strict"))


def _custom_function(tool: CustomTool) -> Function:
    description = f"{tool.description or ''}\n\nCall it with its whole text as the argument `{_INPUT}`."
    if isinstance(tool.format, Grammar):
        description += f" The input follows this {_SYNTAXES[tool.format.syntax]}:\n{tool.format.definition}"
    parameters = {
        "type": "object",
        "properties": {_INPUT: {"type": "string", "description": "Plain text."}},
        "required": [_INPUT],
        "additionalProperties": False,
    }
    return Function(name=tool.name, description=description.strip(), parameters=parameters)


def _by_name(offered: Sequence[_Offered]) -> dict[str, CalledTool]:
    tools: dict[str, CalledTool] = {}
    for each in offered:
        if tools.setdefault(each.function.name, each.tool) != each.tool:
            problem = f"another tool is also the function {each.function.name!r} for the model; rename one of them"
            raise invalid_field(f"{each.path}.name: {problem}", f"{each.path}.name")
    return tools


def _allowed(choice: ChooseAllowed, offered: Sequence[_Offered], tools: dict[str, CalledTool]) -> list[_Offered]:
    names = {
        _allowed_name(allowed, f"tool_choice.tools[{place}].name", tools)
        for place, allowed in enumerate(choice.tools)
        if allowed.type in {"function", "custom"}
    }
    return [each for each in offered if each.function.name in names]


def _allowed_name(allowed: AllowedTool, path: str, tools: dict[str, CalledTool]) -> str:
    name = function_name(allowed.name, allowed.namespace)
    if name not in tools:
        raise invalid_field(f"{path}: {allowed.name!r} is not one of `tools`", path)
    return name
