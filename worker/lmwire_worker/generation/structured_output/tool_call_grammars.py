"""The grammar of a call, derived from the record of its format."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from keyword import kwlist
from typing import Any, Final

from lmwire_protocol import RequestError

from ...tool_parsers import (
    CALL_ID,
    ITEM,
    NUMBER,
    GemmaCall,
    JsonCall,
    NestedCall,
    PythonCall,
    TaggedCall,
    ToolFormat,
    parameters_in_order,
)
from .gemma_calls import ANY_DEPTH, GemmaCallRule
from .lark_rules import LarkRules, quoted
from .tool_parameters import (
    ANNOTATIONS,
    CHOICE_KEYWORDS,
    DEFINITIONS,
    Parameter,
    RawText,
    check_name,
    loosen,
    read_parameters,
    unsupported,
)

TAG_NAME: Final = re.compile(r"[^\s<>\"'=:/]+")
PYTHON_NAME: Final = re.compile(rf"(?!(?:{'|'.join(kwlist)})\Z)[A-Za-z_]\w*", re.ASCII)
DOTTED_WORD: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
SPACED_JSON: Final = {"item_separator": ", ?", "key_separator": ": ?"}
"""Options of JSON in which a space may follow a comma and a colon."""
SINGLE_QUOTED: Final = r"/'[^'\\]*'/"
MAX_LISTS: Final = 3
"""Maximum number of Python's lists inside one another."""
PYTHON_JSON: Final = {**SPACED_JSON, "json_allowed_escapes": '"\\bfnrt'}
"""Options of JSON that is Python too, but for the words of literals. The escapes are the same in strings of both."""


def add_call(rules: LarkRules, form: ToolFormat, name: str, schema: dict[str, Any], path: str) -> str:
    """Add the rules of a call of a function, and return its expression.

    Args:
        rules: The grammar to add the rules to.
        form: The format of calls.
        name: The function's name.
        schema: The schema of its arguments.
        path: The function's path in the request.

    Raises:
        RequestError: unsupported: the format cannot enforce the schema, or write a name.
    """
    match form.shape:
        case JsonCall() as shape:
            return _add_json_call(rules, shape, name, schema, path)
        case TaggedCall() as shape:
            return _TaggedCallRule(rules, shape).add(name, schema, path)
        case PythonCall() as shape:
            return _add_python_call(rules, shape, name, schema, path)
        case NestedCall() as shape:
            return _NestedCallRule(rules, shape).add(name, schema, path)
        case GemmaCall(quote):
            return GemmaCallRule(quote)(rules, name, schema, path)
    raise unsupported(path, f"calls that are written as this model does ({form.name}) cannot be enforced")


def loosen_schema(form: ToolFormat, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the loosest schema of arguments with which a call can be written.

    Args:
        form: The format of calls.
        schema: The schema.
    """
    if isinstance(form.shape, JsonCall):
        return {"type": "object"}
    is_signature = isinstance(form.shape, PythonCall) and form.shape.required_first
    return loosen(schema | {"properties": parameters_in_order(schema)} if is_signature else schema)


def _fixed(rules: LarkRules, text: str) -> str:
    """Return an expression for fixed text with placeholders of numbers and ids."""
    pieces = {NUMBER: "/[0-9]{1,4}/", CALL_ID: "/[A-Za-z0-9]{9}/"}
    parts = re.split(f"([{NUMBER}{CALL_ID}])", text)
    return " ".join(pieces.get(part) or rules.fixed(part) for part in parts if part)


def _join(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _add_json_call(rules: LarkRules, shape: JsonCall, name: str, schema: dict[str, Any], path: str) -> str:
    name = quoted(name) if shape.names is None else check_name(name, shape.names, f"{path}.name")
    arguments = rules.json(schema, **SPACED_JSON)
    if shape.middle.isspace():
        between = rules.literal(shape.middle)
    else:
        between = rules.rule(" | ".join(_fixed(rules, text) for text in (shape.middle, *shape.other_middles)))
    return _join(_fixed(rules, f"{shape.before}{name}"), between, arguments, _fixed(rules, shape.after))


@dataclass(frozen=True, slots=True)
class _TaggedCallRule:
    """Adds calls with their parameters between tags."""

    rules: LarkRules
    shape: TaggedCall

    def add(self, name: str, schema: dict[str, Any], path: str) -> str:
        """Add the rules of a call, and return its expression."""
        check_name(name, TAG_NAME, f"{path}.name")
        parameters = list(read_parameters(schema, f"{path}.parameters"))
        names = [check_name(parameter.name, TAG_NAME, parameter.path) for parameter in parameters]
        items = [(self._parameter(parameter, names), parameter.required) for parameter in parameters]
        head = _fixed(self.rules, self.shape.head.replace("{}", name))
        return _join(head, self.rules.sequence(items, ""), self.rules.fixed(self.shape.tail))

    def _parameter(self, parameter: Parameter, names: Sequence[str]) -> str:
        parts = parameter.alternatives()
        kinds = [part["type"] for part in parts if part["type"] != "string"]
        excluded = list(self.shape.excluded)
        if self.shape.recovers:
            before, _, after = self.shape.tag.partition("{}")
            line = "\n" if after.endswith("\n") else ""
            excluded += [f"{line}{before}{name}{after.partition('{')[0].rstrip()}" for name in names]
        text = RawText(excluded, kinds)
        return self.rules.rule(" | ".join(self._value(parameter, part, text) for part in parts))

    def _value(self, parameter: Parameter, part: dict[str, Any], text: RawText) -> str:
        opened, end = self.shape.open_tag(parameter.name, part["type"]), self.shape.end
        tag, close = opened.rstrip("\n"), end.rstrip()
        line = self.rules.literal(opened[len(tag) :])  # a string may start with a line break
        start, after = _join(self.rules.fixed(tag), line), self.rules.fixed(end[len(close) :])
        if part["type"] != "string":
            value = self.rules.json(part, **SPACED_JSON)
            if part["type"] == "boolean":  # templates write Python's words, and models learn them
                value = f"({value} | {' | '.join(_python_booleans(part))})"
            return _join(start, value, self.rules.fixed(close), after)
        value = text.rule(self.rules, part, parameter.path, close)
        if self.shape.cdata:
            block = RawText(("]]>",), text.kinds).rule(self.rules, part, parameter.path, f"]]>{close}")
            value = self.rules.rule(f'{value} | "<![CDATA[" {block}')
        return _join(start, value, after)


def _add_python_call(rules: LarkRules, shape: PythonCall, name: str, schema: dict[str, Any], path: str) -> str:
    check_name(name, DOTTED_WORD, f"{path}.name")
    if shape.required_first:
        schema = schema | {"properties": parameters_in_order(schema)}
    items = []
    for parameter in read_parameters(schema, f"{path}.parameters"):
        check_name(parameter.name, PYTHON_NAME, parameter.path)
        value = _python_value(rules, parameter)
        items.append((rules.rule(f"{rules.literal(f'{parameter.name}=')} ({value})"), parameter.required))
    return _join(rules.literal(f"{name}("), rules.sequence(items, ", "), rules.literal(")"))


def _python_value(rules: LarkRules, parameter: Parameter, depth: int = 0) -> str:
    values = []
    for part in parameter.alternatives():
        if part["type"] == "null":
            values += ('"None"', '"null"')  # some templates write JSON
        elif part["type"] in _ANY_PYTHON and not part.keys() - ANNOTATIONS - {"type"}:
            values.append(_any_python(rules, part["type"]))
        elif part["type"] == "boolean":
            values += (*_python_booleans(part), rules.json(part))
        else:
            values.append(rules.json(part, **PYTHON_JSON))
            values += _python_forms(rules, part, parameter.path, depth)
    return " | ".join(values)


def _python_forms(rules: LarkRules, part: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    """Yield expressions for the forms of a string or a list that only Python has."""
    keywords = part.keys() - ANNOTATIONS - {"type"}
    if part["type"] == "string" and not keywords:
        yield rules.terminal(SINGLE_QUOTED)
    elif part["type"] == "string" and keywords <= CHOICE_KEYWORDS:
        texts = [text for text in part.get("enum", [part.get("const")]) if isinstance(text, str)]
        yield from (quoted(repr(text)) for text in texts if repr(text) == f"'{text}'")
    elif part["type"] == "array" and keywords == {"items"} and isinstance(part["items"], dict) and depth < MAX_LISTS:
        definitions = {name: part[name] for name in DEFINITIONS if name in part}
        item = Parameter(ITEM, definitions | part["items"], True, f"{path}.items")
        try:
            value = rules.rule(_python_value(rules, item, depth + 1))
        except RequestError:  # as JSON alone
            return
        yield rules.rule(f'"[" ({value} (", " {value})*)? "]"')


def _python_booleans(schema: dict[str, Any]) -> list[str]:
    """Return Python's words for the values of a boolean."""
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else [True, False])
    return [f'"{value}"' for value in (True, False) if any(value is each for each in allowed)]


_ANY_PYTHON: Final = {
    "array": '"[" ({item} (", " {item})*)? "]"',
    "object": '"{{" ({key} {item} (", " {key} {item})*)? "}}"',
}
"""Expressions for arrays and objects of anything, in Python."""


def _any_python(rules: LarkRules, kind: str) -> str:
    """Return an expression for any array or object in Python, with the literals of Python or of JSON in it."""
    string, number = rules.json({"type": "string"}, **PYTHON_JSON), rules.json({"type": "number"})
    key = f'{string} ": "'
    item = f"({string} | {number} | /True|False|None|true|false|null/)"
    for _ in range(ANY_DEPTH):
        inner = [rules.rule(form.format(item=item, key=key)) for form in _ANY_PYTHON.values()]
        item = rules.rule(f"{item} | {' | '.join(inner)}")
    return rules.rule(_ANY_PYTHON[kind].format(item=item, key=key))


@dataclass(frozen=True, slots=True)
class _NestedCallRule:
    """Adds calls with all their values between nested tags."""

    rules: LarkRules
    shape: NestedCall

    def add(self, name: str, schema: dict[str, Any], path: str) -> str:
        """Add the rules of a call, and return its expression."""
        check_name(name, TAG_NAME, f"{path}.name")
        head = self.rules.literal(self.shape.head(name))
        return _join(head, self._object(schema, f"{path}.parameters"), self.rules.literal(self.shape.tail))

    def _object(self, schema: dict[str, Any], path: str) -> str:
        items = []
        for parameter in read_parameters(schema, path):
            check_name(parameter.name, TAG_NAME, parameter.path)
            items.append((self._tagged(parameter, parameter.name), parameter.required))
        return self.rules.sequence(items, "")

    def _tagged(self, parameter: Parameter, tag: str) -> str:
        opened, close = self.rules.literal(self.shape.open_tag(tag)), self.shape.close_tag(tag)
        parts = parameter.alternatives()
        kinds = [part["type"] for part in parts if part["type"] != "string"]
        values = []
        for part in parts:
            if part["type"] == "string":
                values.append(RawText([self.shape.marker], kinds).rule(self.rules, part, parameter.path, close))
            else:
                values.append(f"{self._value(part, parameter.path)} {self.rules.literal(close)}")
        return self.rules.rule(f"{opened} ({' | '.join(values)})")

    def _value(self, part: dict[str, Any], path: str) -> str:
        if part["type"] == "object":
            return self._object(part, path)
        if part["type"] != "array":
            return self.rules.json(part)
        items = part.get("items", {})
        definitions = {name: part[name] for name in ("$defs", "definitions") if name in part}
        item = Parameter(ITEM, definitions | (items if isinstance(items, dict) else {}), True, f"{path}.items")
        least, most = part.get("minItems", 0), part.get("maxItems", "")
        if not items:  # any value: text and numbers, not further tags
            item = Parameter(ITEM, {"type": ["string", "number", "boolean"]}, True, item.path)
        return self.rules.rule(f"{self._tagged(item, ITEM)}{{{least},{most}}}")
