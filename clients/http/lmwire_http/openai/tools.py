"""Tools and what is said of their use, in chat completions' shape, and on the wire."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lmwire import NamedToolDict, ToolDict

from .generation_params import given


class Function(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a tool does, and what it takes."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON Schema."""
    strict: bool | None = None
    """Hold the arguments to the schema, token by token."""


class Tool(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function that the model may call."""

    function: Function
    type: Literal["function"] = "function"


class NamedFunction(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function's name."""

    name: str


class NamedToolChoice(Struct, kw_only=True, forbid_unknown_fields=True):
    """The one to call."""

    function: NamedFunction
    type: Literal["function"] = "function"


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | NamedToolChoice


def wire_tools(tools: list[Tool]) -> list[ToolDict]:
    """The tools as the client library takes them."""
    return [wire_tool(tool.function) for tool in tools]


def wire_tool(function: Function) -> ToolDict:
    """A tool as the client library takes it."""
    fields: Any = given(function, "name", "description", "parameters", "strict")
    return {"type": "function", "function": fields}


def wire_choice(choice: ToolChoice) -> Literal["auto", "none", "required"] | NamedToolDict:
    """What is said of their use, likewise."""
    return {"name": choice.function.name} if isinstance(choice, NamedToolChoice) else choice
