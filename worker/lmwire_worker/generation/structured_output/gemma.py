"""Calls of Gemma's function models, whose keys and strings are not JSON's: `call:f{city:<escape>Paris<escape>,n:3}`."""

import re
from dataclasses import dataclass
from typing import Any, Final

from .parameters import NOTES, RawText, checked_name, parameters, unsupported
from .rules import Rules, quoted

NAME: Final = re.compile(r"[^\s,:{}\[\]<>\"']+")
OF_ARRAYS: Final = NOTES | {"type", "items", "minItems", "maxItems"}
SCALARS: Final = ("integer", "number", "boolean", "null")


@dataclass(frozen=True, slots=True)
class GemmaCall:
    """Adds the rules of a call; see `layouts.Call`."""

    quote: str
    """What stands at both ends of a string."""

    def __call__(self, rules: Rules, name: str, schema: dict[str, Any], path: str) -> str:
        checked_name(name, NAME, f"{path}.name")
        return f"{quoted(f'call:{name}')} {self._object(rules, schema, f'{path}.parameters')}"

    def _value(self, rules: Rules, schema: Any, path: str) -> str:
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind == "string":
            return f"{rules.literal(self.quote)} {RawText().rule(rules, schema, path, self.quote)}"
        if kind == "array":
            return self._array(rules, schema, path)
        if kind == "object":
            return self._object(rules, schema, path)
        if kind in SCALARS:
            return rules.json(schema)
        raise unsupported(path, "in this model's tool calls every value must have one `type`")

    def _array(self, rules: Rules, schema: dict[str, Any], path: str) -> str:
        for keyword in schema.keys() - OF_ARRAYS:
            raise unsupported(f"{path}.{keyword}", "arrays in this model's tool calls cannot be held to it")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most == 0:
            return rules.literal("[]")
        item = rules.rule(self._value(rules, schema.get("items", {}), f"{path}.items"))
        more = f'("," {item}){{{max(least - 1, 0)},{"" if most is None else most - 1}}}'
        items = rules.rule(f"{item} {more}")
        return rules.rule(f'"[" {items}{"" if least else "?"} "]"')

    def _object(self, rules: Rules, schema: dict[str, Any], path: str) -> str:
        items = []
        for parameter in parameters(schema, path):
            checked_name(parameter.name, NAME, parameter.path)
            value = self._value(rules, parameter.schema, parameter.path)
            items.append((rules.rule(f"{quoted(f'{parameter.name}:')} {value}"), parameter.required))
        return rules.rule(f'"{{" {rules.sequence(items, ",")} "}}"')
