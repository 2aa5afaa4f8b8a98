"""Tools of chat completions, and their conversion for the client library."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lmwire import NamedToolDict, ToolDict

from ..inference.option_fields import given_fields


class Function(Struct, kw_only=True, forbid_unknown_fields=True):
    """The function of a tool."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON Schema."""
    strict: bool | None = None
    """Make the arguments follow the schema, token by token."""


class Tool(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function that the model may call."""

    function: Function
    type: Literal["function"] = "function"


class NamedFunction(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function's name."""

    name: str


class NamedToolChoice(Struct, kw_only=True, forbid_unknown_fields=True):
    """The function that the model must call."""

    function: NamedFunction
    type: Literal["function"] = "function"


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | NamedToolChoice


def wire_tools(tools: list[Tool]) -> list[ToolDict]:
    """Return the tools as the client library takes them."""
    return [wire_tool(tool.function) for tool in tools]


def wire_tool(function: Function) -> ToolDict:
    """Return a tool as the client library takes it."""
    fields: Any = given_fields(function, "name", "description", "parameters", "strict")
    return {"type": "function", "function": fields}


def wire_choice(choice: ToolChoice) -> Literal["auto", "none", "required"] | NamedToolDict:
    """Return the tool choice as the client library takes it."""
    return {"name": choice.function.name} if isinstance(choice, NamedToolChoice) else choice
