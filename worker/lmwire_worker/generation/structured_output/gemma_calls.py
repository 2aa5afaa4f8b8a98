"""The grammar of Gemma's calls, with keys and strings that are not JSON: `call:f{city:<escape>Paris<escape>,n:3}`."""

import re
from dataclasses import dataclass
from typing import Any, Final

from .lark_rules import LarkRules, quoted
from .tool_parameters import ANNOTATIONS, RawText, check_name, read_parameters, unsupported

NAME: Final = re.compile(r"[^\s,:{}\[\]<>\"']+")
ARRAY_KEYWORDS: Final = ANNOTATIONS | {"type", "items", "minItems", "maxItems"}
SCALAR_TYPES: Final = ("integer", "number", "boolean", "null")


@dataclass(frozen=True, slots=True)
class GemmaCallRule:
    """Adds the rules of a call; see `tool_call_grammars.CallRule`."""

    quote: str
    """The marker at both ends of a string."""

    def __call__(self, rules: LarkRules, name: str, schema: dict[str, Any], path: str) -> str:
        """Add the rules of a call, and return its expression."""
        check_name(name, NAME, f"{path}.name")
        return f"{quoted(f'call:{name}')} {self._object(rules, schema, f'{path}.parameters')}"

    def _value(self, rules: LarkRules, schema: Any, path: str) -> str:
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind == "string":
            return f"{rules.literal(self.quote)} {RawText().rule(rules, schema, path, self.quote)}"
        if kind == "array":
            return self._array(rules, schema, path)
        if kind == "object":
            return self._object(rules, schema, path)
        if kind in SCALAR_TYPES:
            return rules.json(schema)
        raise unsupported(path, "in this model's tool calls every value must have one `type`")

    def _array(self, rules: LarkRules, schema: dict[str, Any], path: str) -> str:
        for keyword in schema.keys() - ARRAY_KEYWORDS:
            raise unsupported(f"{path}.{keyword}", "arrays in this model's tool calls cannot be held to it")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most == 0:
            return rules.literal("[]")
        item = rules.rule(self._value(rules, schema.get("items", {}), f"{path}.items"))
        more = f'("," {item}){{{max(least - 1, 0)},{"" if most is None else most - 1}}}'
        items = rules.rule(f"{item} {more}")
        return rules.rule(f'"[" {items}{"" if least else "?"} "]"')

    def _object(self, rules: LarkRules, schema: dict[str, Any], path: str) -> str:
        items = []
        for parameter in read_parameters(schema, path):
            check_name(parameter.name, NAME, parameter.path)
            value = self._value(rules, parameter.schema, parameter.path)
            items.append((rules.rule(f"{quoted(f'{parameter.name}:')} {value}"), parameter.required))
        return rules.rule(f'"{{" {rules.sequence(items, ",")} "}}"')
