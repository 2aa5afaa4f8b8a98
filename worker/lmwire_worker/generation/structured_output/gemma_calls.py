"""The grammar of Gemma's calls, with keys and strings that are not JSON: `call:f{city:<escape>Paris<escape>,n:3}`."""

import re
from dataclasses import dataclass
from typing import Any, Final

from ...tool_parsers import key_order
from .lark_rules import LarkRules, quoted
from .tool_parameters import ANNOTATIONS, DEFINITIONS, Parameter, RawText, check_name, read_parameters, unsupported

NAME: Final = re.compile(r"[^\s,:{}\[\]<>\"']+")
ARRAY_KEYWORDS: Final = ANNOTATIONS | {"type", "items", "minItems", "maxItems"}
ANY_DEPTH: Final = 3
"""Number of arrays and objects inside one another in a value of any type."""


@dataclass(frozen=True, slots=True)
class GemmaCallRule:
    """Adds the rules of a call; see `tool_call_grammars.add_call`."""

    quote: str
    """The marker at both ends of a string."""

    def __call__(self, rules: LarkRules, name: str, schema: dict[str, Any], path: str) -> str:
        """Add the rules of a call, and return its expression."""
        check_name(name, NAME, f"{path}.name")
        return f"{quoted(f'call:{name}')} {self._object(rules, schema, f'{path}.parameters')}"

    def _value(self, rules: LarkRules, parameter: Parameter, depth: int = 0) -> str:
        parts = parameter.alternatives()
        if depth >= ANY_DEPTH and not parameter.schema.keys() - ANNOTATIONS:
            parts = [part for part in parts if part["type"] not in ("array", "object")]
        return " | ".join(self._of_type(rules, part, parameter.path, depth) for part in parts)

    def _of_type(self, rules: LarkRules, part: dict[str, Any], path: str, depth: int) -> str:
        if part["type"] == "string":
            return f"{rules.literal(self.quote)} {RawText().rule(rules, part, path, self.quote)}"
        if part["type"] == "array":
            return self._array(rules, part, path, depth)
        if part["type"] == "object" and not part.keys() - ANNOTATIONS - {"type"}:
            return self._any_object(rules, path, depth)
        if part["type"] == "object":
            return self._object(rules, part, path)
        return rules.json(part)

    def _array(self, rules: LarkRules, schema: dict[str, Any], path: str, depth: int) -> str:
        for keyword in schema.keys() - ARRAY_KEYWORDS:
            raise unsupported(f"{path}.{keyword}", "arrays in this model's tool calls cannot be held to it")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most == 0:
            return rules.literal("[]")
        items = schema.get("items", {})
        definitions = {name: schema[name] for name in DEFINITIONS if name in schema}
        element = Parameter("", definitions | (items if isinstance(items, dict) else {}), True, f"{path}.items")
        item = rules.rule(self._value(rules, element, depth + 1))
        more = f'("," {item}){{{max(least - 1, 0)},{"" if most is None else most - 1}}}'
        sequence = rules.rule(f"{item} {more}")
        return rules.rule(f'"[" {sequence}{"" if least else "?"} "]"')

    def _any_object(self, rules: LarkRules, path: str, depth: int) -> str:
        anything = Parameter("", {}, True, path)
        value = rules.rule(self._value(rules, anything, depth + 1))
        member = rules.rule(f'/[A-Za-z_][A-Za-z0-9_-]*/ ":" {value}')
        return rules.rule(f'"{{" ({member} ("," {member})*)? "}}"')

    def _object(self, rules: LarkRules, schema: dict[str, Any], path: str) -> str:
        items = []
        for parameter in sorted(read_parameters(schema, path), key=lambda parameter: key_order(parameter.name)):
            check_name(parameter.name, NAME, parameter.path)
            value = self._value(rules, parameter)
            items.append((rules.rule(f"{quoted(f'{parameter.name}:')} ({value})"), parameter.required))
        return rules.rule(f'"{{" {rules.sequence(items, ",")} "}}"')
