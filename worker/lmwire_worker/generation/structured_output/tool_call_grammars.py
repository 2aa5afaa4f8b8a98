"""The grammars of the formats of tool calls: the text between a section's markers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from keyword import kwlist
from typing import Any, Final

from ...tool_parsers import parameters_in_order
from .gemma_calls import GemmaCallRule
from .lark_rules import LarkRules, quoted
from .tool_parameters import Parameter, RawText, check_name, loosen, read_parameters, unsupported

TAG_NAME: Final = re.compile(r"[^\s<>\"'=:/]+")
PATH_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
PYTHON_NAME: Final = re.compile(rf"(?!(?:{'|'.join(kwlist)})\Z)[A-Za-z_]\w*", re.ASCII)
DOTTED_WORD: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
SPACED_JSON: Final = {"item_separator": ", ", "key_separator": ": "}
NUMBER: Final = "\0"
"""Placeholder for any number in fixed text."""
PYTHON_ESCAPES: Final = {"json_allowed_escapes": '"\\bfnrt'}
"""Escapes that are the same in strings of JSON and Python."""

CallRule = Callable[[LarkRules, str, dict[str, Any], str], str]
"""Adds the rules of a call and returns its expression. Takes the rules, the function's name, the schema of its
arguments, and the function's path in the request."""


@dataclass(frozen=True, slots=True)
class CallLayout:
    """The layout of a section of calls."""

    call: CallRule
    before: str = ""
    """Text between the start marker and the first call."""
    between_calls: str | None = None
    """Text between two calls of a section; None if a section has one call."""
    after: str = ""
    """Text between the last call and the end marker."""
    between_sections: str | None = None
    """Text between two sections; None if an answer has one section."""

    def loosen(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the loosest schema with which a call can be written."""
        if isinstance(self.call, _JsonCallRule):
            return {"type": "object"}
        return loosen(self.call.reorder(schema) if isinstance(self.call, _TaggedCallRule) else schema)


@dataclass(frozen=True, slots=True)
class _JsonCallRule:
    """A call with its arguments in one JSON object, after the name."""

    before: str
    """Text before the name."""
    middle: str
    """Text between the name and the object."""
    after: str = ""
    """Text after the object."""
    names: re.Pattern[str] | None = None
    """Pattern of the names that can be written unquoted; None if names are JSON strings."""
    spaced: bool = True
    """The object has a space after each comma and colon, as in most chat templates."""

    def __call__(self, rules: LarkRules, name: str, schema: dict[str, Any], path: str) -> str:
        name = quoted(name) if self.names is None else check_name(name, self.names, f"{path}.name")
        parts = [
            _literal_with_numbers(rules, f"{self.before}{name}{self.middle}"),
            rules.json(schema, **(SPACED_JSON if self.spaced else {})),
            rules.literal(self.after),
        ]
        return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class _TaggedCallRule:
    """A call with separate parameters after the name. Strings are unquoted, and other values are JSON."""

    head: str
    """Text before the parameters, with `{}` for the function's name."""
    tag: str
    """Text before a value, with `{}` for the parameter's name and `{kind}` for its type."""
    end: str
    """Text after a value."""
    tail: str = ""
    """Text after the parameters."""
    text: RawText | None = None
    """Form of strings; None for JSON."""
    mixed: bool = False
    """Parameters may have any types, which the parser finds from the JSON. If false, each must have one type."""
    separator: str = ""
    required_first: bool = False
    """Required parameters come first, as in the signature that the prompt shows."""
    names: re.Pattern[str] = TAG_NAME
    parameter_names: re.Pattern[str] = TAG_NAME
    json_options: Mapping[str, Any] = field(default_factory=lambda: SPACED_JSON)

    def __call__(self, rules: LarkRules, name: str, schema: dict[str, Any], path: str) -> str:
        check_name(name, self.names, f"{path}.name")
        items = [
            (self._parameter(rules, parameter), parameter.required)
            for parameter in read_parameters(self.reorder(schema), f"{path}.parameters")
        ]
        parts = [
            _literal_with_numbers(rules, self.head.format(name)),
            rules.sequence(items, self.separator),
            rules.literal(self.tail),
        ]
        return " ".join(filter(None, parts))

    def reorder(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a call's arguments, with its properties in the order of the call."""
        return schema | {"properties": parameters_in_order(schema)} if self.required_first else schema

    def _parameter(self, rules: LarkRules, parameter: Parameter) -> str:
        name = check_name(parameter.name, self.parameter_names, parameter.path)
        kind = parameter.schema["type"] if parameter.is_typed else "object"
        tag = rules.literal(self.tag.format(name, kind=kind))
        if self.text is not None and parameter.is_string:
            return rules.rule(f"{tag} {self.text.rule(rules, parameter.schema, parameter.path, self.end)}")
        if not self.mixed and not parameter.is_typed:
            raise unsupported(parameter.path, "in this model's tool calls a parameter must have one `type`")
        return rules.rule(f"{tag} {rules.json(parameter.schema, **self.json_options)} {rules.literal(self.end)}")


def _literal_with_numbers(rules: LarkRules, text: str) -> str:
    """Return an expression for fixed text with number placeholders."""
    return " /[0-9]{1,4}/ ".join(map(rules.literal, text.split(NUMBER)))


def _key_value(prefix: str = "", line: str = "") -> CallLayout:
    key, value, call = f"{prefix}arg_key", f"{prefix}arg_value", f"</{prefix}tool_call>"
    text = RawText(excluded=[call], trimmed=True)
    tagged = _TaggedCallRule(
        f"{{}}{line}", f"<{key}>{{}}</{key}>{line}<{value}>", f"</{value}>{line}", text=text, mixed=True
    )
    return CallLayout(tagged, between_sections="\n" if line else "")


_PYTHON: Final = _TaggedCallRule(
    "{}(",
    "{}=",
    "",
    ")",
    mixed=True,
    separator=", ",
    names=DOTTED_WORD,
    parameter_names=PYTHON_NAME,
    json_options=SPACED_JSON | PYTHON_ESCAPES,
)

LAYOUTS: Final[dict[str, CallLayout]] = {
    "json_tools": CallLayout(
        _JsonCallRule('{"name": ', ', "arguments": ', "}"), before="\n", after="\n", between_sections="\n"
    ),
    "llama3_json": CallLayout(_JsonCallRule('{"name": ', ', "parameters": ', "}")),
    "mistral": CallLayout(_JsonCallRule("", "[ARGS]", names=PATH_NAME), between_sections=""),
    "kimi_k2": CallLayout(
        _JsonCallRule(
            "<|tool_call_begin|>functions.",
            f":{NUMBER}<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            names=PATH_NAME,
        ),
        between_calls="",
    ),
    "kimi_k3": CallLayout(
        _TaggedCallRule(
            f'<|open|>call tool="{{}}" index="{NUMBER}"<|sep|>',
            '<|open|>argument key="{}" type="{kind}"<|sep|>',
            "<|close|>argument<|sep|>",
            "<|close|>call<|sep|>",
            text=RawText(),
            mixed=True,
        ),
        between_calls="",
    ),
    "harmony": CallLayout(_JsonCallRule("functions.", " <|constrain|>json<|message|>", names=PATH_NAME, spaced=False)),
    "qwen3_coder": CallLayout(
        _TaggedCallRule(
            "<function={}>\n",
            "<parameter={}>\n",
            "\n</parameter>\n",
            "</function>",
            text=RawText(excluded=["</parameter>", "</tool_call>"], excludes_null=True),
        ),
        before="\n",
        after="\n",
        between_sections="\n",
    ),
    "glm47": _key_value(),
    "laguna": _key_value(),
    "longcat": _key_value("longcat_", "\n"),
    "minimax_m2": CallLayout(
        _TaggedCallRule(
            '<invoke name="{}">\n',
            '<parameter name="{}">',
            "</parameter>\n",
            "</invoke>\n",
            text=RawText(
                excluded=["</parameter>", "</invoke>", "</minimax:tool_call>"], trimmed=True, excludes_null=True
            ),
        ),
        before="\n",
        between_calls="",
    ),
    "minicpm5": CallLayout(
        _TaggedCallRule(
            '"{}">',
            '<param name="{}">',
            "</param>",
            text=RawText(excluded=["<", "&"], trimmed=True, excludes_null=True),
        ),
        between_sections="",
    ),
    "muse_spark": CallLayout(
        _TaggedCallRule(
            '<atem:invoke name="{}">\n',
            '<atem:parameter name="{}">',
            "</atem:parameter>\n",
            "</atem:invoke>\n",
            mixed=True,
        ),
        before="\n",
        between_calls="",
    ),
    "pythonic": CallLayout(_PYTHON, before="[", between_calls=", ", after="]"),
    "gemma3_code": CallLayout(replace(_PYTHON, required_first=True), before="\n", between_calls="\n"),
    "gemma4": CallLayout(GemmaCallRule('<|"|>'), between_sections=""),
    "function_gemma": CallLayout(GemmaCallRule("<escape>"), between_sections=""),
}
"""The layouts by the names of their formats in `tool_parsers.FORMATS`."""
