"""Grammars of answers that call tools, whichever way the model writes its calls."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lmwire_protocol import Tool

from ..tools import ToolFormat
from .formats import check_schema
from .layouts import LAYOUTS
from .parameters import unsupported
from .rules import Rules
from .vocabulary import Vocabulary

Schemas = Mapping[int, dict[str, Any]]
"""What the arguments of some of a request's tools are held to, by the tools' places in the request."""
MESSAGE: Final = "<|channel|>commentary<|message|>"
"""In harmony, what a model says before it calls."""
BARE_START: Final = r'/\s*\{\s*"name"(?s:.*)/'
"""Text that readers take for the beginning of a call without a marker."""


class Calls:
    """The calls that an answer may hold, in one model's format.

    Args:
        tools: The request's.
        schemas: The tools that may be called.
        form: The model's way to write calls.
        many: There may be several calls.
        vocabulary: The model's.

    Raises:
        RequestError: unsupported: they cannot be held to that in this format.
    """

    def __init__(
        self, tools: Sequence[Tool], schemas: Schemas, form: ToolFormat, many: bool, vocabulary: Vocabulary
    ) -> None:
        self._rules = rules = Rules(vocabulary)
        self._form = form
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

    def alone(self) -> str:
        """The grammar of an answer that is calls and nothing else."""
        rules, start = self._rules, self._form.start
        first = self._section if self._form.bare else f"{rules.literal(start)} {self._section}"
        again = f"({rules.literal((self._layout.again or '') + start)} {self._section})*" if self._many else ""
        return rules.grammar(f"{first} {again}")

    def among_text(self) -> str:
        """The grammar of an answer that is any text, calls, or both."""
        rules, form = self._rules, self._form
        if form.bare:
            text = rules.terminal(f"/(?s:.*)/ & ~{BARE_START}")
            return rules.grammar(f"{self._section} | {text}")
        text = rules.text_without([form.start])
        call = f"{rules.text_until(form.start)} {self._section}"
        return rules.grammar(f"({call}){'*' if self._many else '?'} {text}")


def enforced(tools: Sequence[Tool], name: str | None, vocabulary: Vocabulary) -> Schemas:
    """The schemas of all tools, or of the one that is named.

    Raises:
        RequestError: invalid_request: one of them is none, or asks for what cannot be enforced.
    """
    schemas = {
        index: tool.function.parameters
        for index, tool in enumerate(tools)
        if name is None or tool.function.name == name
    }
    for index, schema in schemas.items():
        check_schema(schema, f"tools[{index}].function.parameters", vocabulary)
    return schemas


def offered(tools: Sequence[Tool], form: ToolFormat, vocabulary: Vocabulary) -> Schemas:
    """The schemas of strict tools, and of the others what their calls need to be written at all."""
    schemas: dict[int, dict[str, Any]] = {}
    for index, tool in enumerate(tools):
        schema = tool.function.parameters
        if tool.function.strict:
            check_schema(schema, f"tools[{index}].function.parameters", vocabulary)
            schemas[index] = schema
        else:
            schemas[index] = LAYOUTS[form.name].loosened(schema)
    return schemas


def check_form(form: ToolFormat | None, path: str) -> ToolFormat:
    """Raises unsupported when calls of this model cannot be enforced."""
    if form is None:
        raise unsupported(path, "this model has no way to call tools that could be enforced")
    if form.name not in LAYOUTS:
        raise unsupported(path, f"calls that are written as this model does ({form.name}) cannot be enforced")
    return form
