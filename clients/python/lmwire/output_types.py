"""Types as the format of answers: the JSON Schema that the worker enforces, and the values that answers become.

Pydantic's types are read by Pydantic, all others by msgspec: dataclasses, Structs, TypedDicts and collections of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast, get_args, get_type_hints

import msgspec

from lmwire_protocol import Format, JsonSchemaFormat

from .errors import InvalidAnswer
from .options import FormatDict

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # Python before 3.13 has no defaults; type checkers know them

    Parsed = TypeVar("Parsed", default=Any)
else:
    from typing import TypeVar

    Parsed = TypeVar("Parsed")

OutputFormat: TypeAlias = type[Parsed] | Format | FormatDict | None
"""Values of `format`: a type, or a format of the protocol."""
_REMEDIES = {
    "length": "raise max_tokens, or shorten the prompt",
    "timeout": "raise timeout_ms",
    "tool_calls": "read tool_calls, or send no tools",
}
"""Advice for each early end."""


class OutputType(Generic[Parsed]):
    """A type that answers are parsed as.

    >>> OutputType(list[int]).parse("[1, 2]", "stop")
    [1, 2]
    >>> worker.chat("Count to 2.", format=bool).answer().parsed in (True, False)
    True

    Args:
        type: A Pydantic model, a dataclass, a Struct of msgspec, a TypedDict, or a collection, such as list[Person].

    Raises:
        TypeError: The type has no JSON Schema.
    """

    def __init__(self, type: type[Parsed]) -> None:
        self._name = type.__name__ if not get_args(type) else str(type)
        schema, self._decode = _with_pydantic(type) if _is_pydantic(type) else _with_msgspec(type)
        self.format = JsonSchemaFormat(schema=_without_further_properties(schema))

    def parse(self, text: str, finish_reason: str) -> "Parsed | InvalidAnswer":
        """Return the value that an answer is, or the error to raise where the value is asked for.

        Args:
            text: The answer's text.
            finish_reason: The reason why the answer ended.
        """
        if finish_reason != "stop":
            remedy = f": {_REMEDIES[finish_reason]}" if finish_reason in _REMEDIES else ""
            problem = f"the model did not finish it (finish_reason: {finish_reason}){remedy}"
            return InvalidAnswer(self._name, problem, text, finish_reason)
        try:
            return self._decode(text)
        except ValueError as error:
            return InvalidAnswer(self._name, str(error), text, finish_reason)


def split_format(
    format: "OutputFormat[Parsed]",
) -> tuple[Format | FormatDict | None, OutputType[Parsed] | None]:
    """Return the format as the protocol has it, and the type that answers are parsed as.

    Args:
        format: The `format` that the caller gives.

    Raises:
        TypeError: It is neither a type nor a format of the protocol.
    """
    if format is None or isinstance(format, dict | Format):  # pyrefly: ignore[implicit-any-type-argument]
        return format, None
    given: Any = format  # a caller without a type checker gives anything
    if not (isinstance(given, type) or get_args(given)):
        raise TypeError(f'format: must be a type, or a dictionary such as {{"type": "json_object"}}, not {given!r}')
    output = OutputType(format)
    return output.format, output


def _is_pydantic(type: Any) -> bool:
    """Return whether Pydantic has made the type, or a type inside a collection or a union."""
    return hasattr(type, "__pydantic_validator__") or any(map(_is_pydantic, get_args(type)))


def _with_pydantic(type: Any) -> tuple[dict[str, Any], Callable[[str], Any]]:
    from pydantic import TypeAdapter  # no dependency: it is there, since it has made the type

    adapter: TypeAdapter[Any] = TypeAdapter(type)
    return adapter.json_schema(), adapter.validate_json


def _with_msgspec(type: Any) -> tuple[dict[str, Any], Callable[[str], Any]]:
    try:
        return msgspec.json.schema(type), msgspec.json.Decoder(type).decode
    except (TypeError, NameError) as error:
        problem = str(error).splitlines()[-1]
        raise TypeError(f"format: {_path_to_unsupported(type)} has no JSON Schema: {problem}") from error


def _path_to_unsupported(type: Any) -> str:
    """Return the path to the innermost field whose type has no JSON Schema, such as `Person.address.street`."""
    path = getattr(type, "__name__", str(type))
    while found := next(((name, hint) for name, hint in _hints(type).items() if not _has_schema(hint)), None):
        path, type = f"{path}.{found[0]}", found[1]
    return path


def _hints(type: Any) -> dict[str, Any]:
    try:
        return get_type_hints(type)
    except (TypeError, NameError):
        return {}


def _has_schema(type: Any) -> bool:
    try:
        msgspec.json.schema(type)
    except (TypeError, NameError):
        return False
    return True


def _without_further_properties(schema: Any) -> Any:
    """Return a JSON Schema whose objects have only the listed properties. A model would invent others."""
    if isinstance(schema, list):
        return [_without_further_properties(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _without_further_properties(value) for name, value in cast("dict[str, Any]", schema).items()}
    if closed.get("type") == "object" and isinstance(closed.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed
