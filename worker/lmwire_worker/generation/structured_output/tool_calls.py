"""Grammars of answers with tool calls, in the model's format."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from lmwire_protocol import Tool

from ...tool_parsers import PythonCall, ToolFormat, WrittenCall
from .formats import check_schema
from .lark_rules import MOST_SPACES, LarkRules, quoted
from .message_frames import MessageFrame
from .size_limits import check_size, invalid_request
from .tool_call_grammars import add_call, loosen_schema
from .tool_parameters import unsupported
from .vocabulary import Vocabulary

SchemasByTool = Mapping[int, dict[str, Any]]
"""Schemas of the arguments of tools, by the tools' indexes in the request."""
NO_PARAMETERS: Final = {"type": "object", "properties": {}, "additionalProperties": False}
_OPENED_BY: Final = ("additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames")
"""Keywords of a schema that says itself which arguments it does not list may be there."""
_COMPOSED_OF: Final = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies")
"""Keywords of a schema whose properties may stand elsewhere."""
_LINE: Final = "\n"
_SAMPLE: Final = WrittenCall("f", {})
BARE_START: Final = r'/\s*\{\s*"name"(?s:.*)/'
"""Text that tool parsers take for the start of a call without a marker."""


class ToolCallGrammar:
    """Builds the grammar of an answer's tool calls.

    Args:
        tools: The request's tools.
        schemas: The schemas of the tools that may be called.
        form: The model's format of calls.
        frame: The fixed text around calls.
        many: Allow several calls.
        vocabulary: The model's vocabulary.

    Raises:
        RequestError: unsupported: the format cannot enforce a schema.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        schemas: SchemasByTool,
        form: ToolFormat,
        frame: MessageFrame,
        many: bool,
        vocabulary: Vocabulary,
    ) -> None:
        self._rules = rules = LarkRules(vocabulary)
        self._form = form
        self._frame = frame
        end = "" if vocabulary.ends_turn(form.end) else rules.literal(form.end)
        # A marker that ends with a letter needs its line break, or the next word would be part of it.
        before = rules.literal(form.before) if form.start[-1:].isalnum() else rules.fixed(form.before)

        def add_calls(form: ToolFormat, *, many: bool) -> str:
            """Return an expression for the calls of a section, without its markers."""
            calls = [
                add_call(rules, form, tools[index].function.name, schema, f"tools[{index}].function")
                for index, schema in schemas.items()
            ]
            call = rules.rule(" | ".join(calls))
            more = f"({_between_calls(rules, form)} {call})*" if many and form.between_calls is not None else ""
            return rules.rule(f"{call} {more} {rules.fixed(form.after)}")

        calls = add_calls(form, many=many)
        self._calls = f"{calls} {end}"
        self._section = rules.rule(f"{before} {self._calls}")
        self._bare = rules.rule(f"{before} {calls}") if form.bare else ""
        others = (
            f"{rules.literal(start)} {add_calls(replace(form, shape=shape), many=False)} {end}"
            for start, shape in form.other_calls
        )
        self._marked = rules.rule(" | ".join([f"{rules.literal(form.start)} {self._section}", *others]))
        self._many = many and form.between_sections is not None
        self._recipient = ""
        if frame.recipient is not None:
            before, after = frame.recipient
            # One lexeme each: the start of a name may be that of another recipient.
            names = " | ".join(quoted(f"{before}{tools[index].function.name}") for index in schemas)
            self._recipient = f"({names}) {rules.literal(after)}"

    def only_calls(self, *, is_begun: bool = False) -> str:
        """Return the grammar of an answer that is only calls.

        Args:
            is_begun: The start marker of the first section stands before.
        """
        rules, form = self._rules, self._form
        first = self._section
        if form.start and not self._frame.starts_call and not is_begun:
            firsts = [self._marked, self._bare]
            if form.calls_may_start:
                firsts.append(self._calls)
            first = rules.rule(" | ".join(filter(None, firsts)))
        between = f"{rules.fixed(form.between_sections or _LINE)} {rules.literal(form.start)}"
        again = f"({between} {self._section})*" if self._many else ""
        return rules.grammar(f"{self._recipient} {first} {again} {rules.spaces(MOST_SPACES)}")

    def among_text(self) -> str:
        """Return the grammar of an answer that is any text, calls, or both."""
        rules, form = self._rules, self._form
        if form.bare:
            text = rules.terminal(f"/(?s:.*)/ & ~{BARE_START}")
            return rules.grammar(" | ".join(filter(None, (form.start and self._marked, self._bare, text))))
        text = rules.text_without([form.start])
        if self._frame.text_before_call is not None:
            before, after = self._frame.text_before_call
            said = f"({rules.literal(before)} {rules.text_until(after)})?"
            call = f"{said} {self._recipient} {self._marked}"
            return rules.grammar(f"{call} | {rules.literal(self._frame.before_content)} {text}")
        call = f"{rules.text_until(form.start)} {self._section}"
        return rules.grammar(f"({call}){'*' if self._many else '?'} {text}")


def _between_calls(rules: LarkRules, form: ToolFormat) -> str:
    """Return an expression for what is between two calls of a section. Python needs the line breaks of its lines."""
    text = form.between_calls or ""
    return rules.literal(text) if isinstance(form.shape, PythonCall) and text.isspace() else rules.fixed(text)


def all_schemas(tools: Sequence[Tool], name: str | None, vocabulary: Vocabulary) -> SchemasByTool:
    """Return the schemas of all tools, or of one.

    Args:
        tools: The request's tools.
        name: The name of the only tool to include; None for all.
        vocabulary: The model's vocabulary.

    Raises:
        RequestError: invalid_request: a schema is invalid or cannot be enforced.
    """
    return {
        index: _argument_schema(tool, f"tools[{index}].function.parameters", vocabulary)
        for index, tool in enumerate(tools)
        if name is None or tool.function.name == name
    }


def strict_schemas(tools: Sequence[Tool], form: ToolFormat, vocabulary: Vocabulary) -> SchemasByTool:
    """Return the schemas of strict tools, and loosened schemas of the others, which only let calls be written.

    Args:
        tools: The request's tools.
        form: The model's format of calls.
        vocabulary: The model's vocabulary.

    Raises:
        RequestError: invalid_request: a schema is invalid or cannot be enforced.
    """
    schemas: dict[int, dict[str, Any]] = {}
    for index, tool in enumerate(tools):
        if tool.function.strict:
            schemas[index] = _argument_schema(tool, f"tools[{index}].function.parameters", vocabulary)
        else:
            check_size(tool.function.parameters, f"tools[{index}].function.parameters")
            schemas[index] = loosen_schema(form, tool.function.parameters)
    return schemas


def _argument_schema(tool: Tool, path: str, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the schema of a tool's arguments, which must be an object.

    Arguments that it neither lists nor mentions are not written: a function takes none by other names.
    """
    given = tool.function.parameters or NO_PARAMETERS
    if given.get("type", "object") != "object":
        raise invalid_request(f"{path}.type", "must be `object`: arguments have names")
    schema: dict[str, Any] = {"type": "object"} | given
    check_schema(schema, path, vocabulary)
    # A required argument that is not listed is one by another name.
    unlisted = set(schema.get("required", ())) - set(schema.get("properties", ()))
    if unlisted or any(keyword in schema for keyword in (*_OPENED_BY, *_COMPOSED_OF)):
        return schema
    return schema | {"additionalProperties": False}


def check_format_supported(form: ToolFormat | None, path: str) -> ToolFormat:
    """Return the format of calls.

    Args:
        form: The model's format of calls.
        path: The path of the field that needs it.

    Raises:
        RequestError: unsupported: calls of this model cannot be enforced.
    """
    if form is None:
        raise unsupported(path, "this model has no way to call tools that could be enforced")
    return form
