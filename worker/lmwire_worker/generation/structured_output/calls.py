"""Grammars of answers that call tools, whichever way the model writes its calls."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lmwire_protocol import Tool

from ...tool_parsers import ToolFormat
from .bounds import check_size, invalid
from .formats import check_schema
from .frames import Frame
from .parameters import unsupported
from .rules import Rules, quoted
from .tool_call_grammars import LAYOUTS
from .vocabulary import Vocabulary

Schemas = Mapping[int, dict[str, Any]]
"""What the arguments of some of a request's tools are held to, by the tools' places in the request."""
NO_PARAMETERS: Final = {"type": "object", "properties": {}, "additionalProperties": False}
BARE_START: Final = r'/\s*\{\s*"name"(?s:.*)/'
"""Text that readers take for the beginning of a call without a marker."""


class Calls:
    """The calls that an answer may hold, in one model's format.

    Args:
        tools: The request's.
        schemas: The tools that may be called.
        form: The model's way to write calls.
        frame: What stands around them.
        many: There may be several calls.
        vocabulary: The model's.

    Raises:
        RequestError: unsupported: they cannot be held to that in this format.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        schemas: Schemas,
        form: ToolFormat,
        frame: Frame,
        many: bool,
        vocabulary: Vocabulary,
    ) -> None:
        self._rules = rules = Rules(vocabulary)
        self._form = form
        self._frame = frame
        self._layout = layout = LAYOUTS[form.name]
        calls = [
            layout.call(rules, tools[index].function.name, schema, f"tools[{index}].function")
            for index, schema in schemas.items()
        ]
        call = rules.rule(" | ".join(calls))
        more = f"({rules.literal(layout.between)} {call})*" if many and layout.between is not None else ""
        end = "" if vocabulary.ends_turn(form.end) else form.end
        self._section = rules.rule(f"{rules.literal(layout.before)} {call} {more} {rules.literal(layout.after + end)}")
        self._many = many and layout.again is not None
        self._recipient = ""
        if frame.recipient is not None:
            names = " | ".join(quoted(tools[index].function.name) for index in schemas)
            self._recipient = f"{rules.literal(frame.recipient[0])} ({names}) {rules.literal(frame.recipient[1])}"

    def alone(self) -> str:
        """The grammar of an answer that is calls and nothing else."""
        rules, start = self._rules, self._form.start
        first = self._section if self._form.bare else f"{self._recipient} {rules.literal(start)} {self._section}"
        again = f"({rules.literal((self._layout.again or '') + start)} {self._section})*" if self._many else ""
        return rules.grammar(f"{first} {again}")

    def among_text(self) -> str:
        """The grammar of an answer that is any text, calls, or both."""
        rules, form = self._rules, self._form
        if form.bare:
            text = rules.terminal(f"/(?s:.*)/ & ~{BARE_START}")
            return rules.grammar(f"{self._section} | {text}")
        text = rules.text_without([form.start])
        if self._frame.said is not None:
            before, after = self._frame.said
            said = f"({rules.literal(before)} {rules.text_until(after)})?"
            call = f"{said} {self._recipient} {rules.literal(form.start)} {self._section}"
            return rules.grammar(f"{call} | {rules.literal(self._frame.content)} {text}")
        call = f"{rules.text_until(form.start)} {self._section}"
        return rules.grammar(f"({call}){'*' if self._many else '?'} {text}")


def enforced(tools: Sequence[Tool], name: str | None, vocabulary: Vocabulary) -> Schemas:
    """The schemas of all tools, or of the one that is named.

    Raises:
        RequestError: invalid_request: one of them is none, or asks for what cannot be enforced.
    """
    return {
        index: _arguments(tool, f"tools[{index}].function.parameters", vocabulary)
        for index, tool in enumerate(tools)
        if name is None or tool.function.name == name
    }


def offered(tools: Sequence[Tool], form: ToolFormat, vocabulary: Vocabulary) -> Schemas:
    """The schemas of strict tools, and of the others what their calls need to be written at all."""
    schemas: dict[int, dict[str, Any]] = {}
    for index, tool in enumerate(tools):
        if tool.function.strict:
            schemas[index] = _arguments(tool, f"tools[{index}].function.parameters", vocabulary)
        else:
            check_size(tool.function.parameters, f"tools[{index}].function.parameters")
            schemas[index] = LAYOUTS[form.name].loosened(tool.function.parameters)
    return schemas


def _arguments(tool: Tool, path: str, vocabulary: Vocabulary) -> dict[str, Any]:
    """The schema of a tool's arguments, which are an object."""
    schema = tool.function.parameters or NO_PARAMETERS
    if schema.get("type", "object") != "object":
        raise invalid(f"{path}.type", "must be `object`: arguments have names")
    schema = {"type": "object"} | schema
    check_schema(schema, path, vocabulary)
    return schema


def check_form(form: ToolFormat | None, path: str) -> ToolFormat:
    """Raises unsupported when calls of this model cannot be enforced."""
    if form is None:
        raise unsupported(path, "this model has no way to call tools that could be enforced")
    if form.name not in LAYOUTS:
        raise unsupported(path, f"calls that are written as this model does ({form.name}) cannot be enforced")
    return form
