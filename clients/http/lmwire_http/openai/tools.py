"""Tools of chat completions, and their conversion for the client library."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lmwire import NamedToolDict, ToolDict

from ..errors import invalid_field
from ..inference.options import given_fields
from ..limits import JsonObject


class Function(Struct, kw_only=True, forbid_unknown_fields=True):
    """The function of a tool."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    """A JSON Schema."""
    strict: bool | None = None
    """Make the arguments follow the schema, token by token."""


class Tool(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function that the model may call."""

    function: Function | None = None
    type: Literal["function"] = "function"
    name: str | None = None
    """The function's fields may stand in the tool itself, as in `/v1/responses`."""
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None


class NamedFunction(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function's name."""

    name: str


class NamedToolChoice(Struct, kw_only=True, forbid_unknown_fields=True):
    """The function that the model must call."""

    function: NamedFunction
    type: Literal["function"] = "function"


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | NamedToolChoice
FunctionChoice: TypeAlias = Literal["none", "auto"] | NamedFunction


def wire_tools(tools: list[Tool]) -> list[ToolDict]:
    """Return the tools as the client library takes them.

    Raises:
        ApiError: A tool has no function.
    """
    return [wire_tool(_function(tool, f"tools[{place}]")) for place, tool in enumerate(tools)]


def wire_tool(function: Function) -> ToolDict:
    """Return a tool as the client library takes it."""
    fields: Any = given_fields(function, "name", "description", "parameters", "strict")
    return {"type": "function", "function": fields}


def _function(tool: Tool, path: str) -> Function:
    if tool.function is not None:
        return tool.function
    if tool.name is None:
        raise invalid_field(
            f"{path}.function: is required; it is an object with the function's name", f"{path}.function"
        )
    return Function(name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict)


def function_options(functions: list[Function], choice: FunctionChoice | None) -> dict[str, Any]:
    """Return the options for functions in the format before tools, as `lmwire.ChatOptions`. At most one is called.

    Args:
        functions: The functions.
        choice: The client's choice.
    """
    options: dict[str, Any] = {"tools": [wire_tool(function) for function in functions], "parallel_tool_calls": False}
    if choice is not None:
        options["tool_choice"] = {"name": choice.name} if isinstance(choice, NamedFunction) else choice
    return options


def wire_choice(choice: ToolChoice) -> Literal["auto", "none", "required"] | NamedToolDict:
    """Return the tool choice as the client library takes it."""
    return {"name": choice.function.name} if isinstance(choice, NamedToolChoice) else choice
