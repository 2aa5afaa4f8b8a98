"""Random schemas, expressions, grammars and templates."""

import random
from typing import Any

from support.process.worker_process import Event

KEYS = ("anyOf", "oneOf", "allOf", "items", "properties", "not", "if", "additionalProperties", "patternProperties")
NUMBERS = (0, 1, -1, 3, 97, 9973, 10**6, 10**15, 0.001, 1e300)
ATOMS = (*"ab.", r"\w", r"\d", r"\p{L}", "[^a]", "(?i:x)", "$", "(?=a)", "é")
EXPRESSIONS = (
    "messages",
    "messages|tojson(indent=9)",
    "'x' * 9999",
    "range(99999)|list",
    "7 ** 7 ** 7",
    "messages[9].x",
)


class Inventor:
    """Generator of random requests."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> Event:
        """Return a request with one of them."""
        kind = self._random.choice(("schema", "regex", "lark", "template", "tool"))
        asked: Event = {"cmd": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
        if kind == "template":
            return asked | {"chat_template": self.template(4)}
        if kind == "tool":
            function = {"name": "f", "parameters": self.schema(4), "strict": True}
            return asked | {"tools": [{"type": "function", "function": function}], "truncate": "left"}
        if kind == "schema":
            return asked | {"format": {"type": "json_schema", "schema": self.schema(5)}}
        if kind == "regex":
            return asked | {"format": {"type": "regex", "pattern": self.pattern(6) or "a"}}
        return asked | {"format": {"type": "lark", "grammar": self.lark()}}

    def schema(self, depth: int) -> Any:
        """Return a schema, nested as deep."""
        choose = self._random.choice
        schema: Event = {}
        for _ in range(self._random.randrange(4)):
            key = choose((*KEYS, "type", "enum", "const", "$ref", "multipleOf", "minimum", "maxLength", "minItems"))
            inner = self.schema(depth - 1) if depth else {"type": "string"}
            if key in ("anyOf", "oneOf", "allOf"):
                schema[key] = [inner] * choose((0, 1, 2, 50))
            elif key in ("properties", "patternProperties"):
                schema[key] = {choose(("a", "b", "^x", "(a+)+$")): inner for _ in range(choose((0, 1, 3)))}
            elif key == "type":
                schema[key] = choose(("object", "array", "string", "integer", "number", "null", "boolean", "odd", 3))
            elif key in ("enum", "const"):
                schema[key] = [choose((1, "a", None, {}))] * choose((0, 1, 300))
            elif key == "$ref":
                schema[key] = choose(("#", "#/$defs/a", "#/properties/a", "nowhere"))
            else:
                schema[key] = inner if key in KEYS else choose(NUMBERS)
        if depth == 5 and choose((True, False)):
            schema["$defs"] = {"a": self.schema(3)}
        return schema

    def pattern(self, depth: int) -> str:
        """Return a regular expression of as many parts."""
        choose = self._random.choice
        if not depth:
            return choose(ATOMS)
        left, right = self.pattern(depth - 1), self.pattern(choose(range(depth)))
        return choose(
            (left, left + right, f"({left}|{right})", f"({left}){{{choose((1, 7, 900))}}}", f"({left})*", "(")
        )

    def lark(self) -> str:
        """Return a grammar in Lark."""
        names = [f"r{index}" for index in range(self._random.choice((1, 3, 40)))]
        lines = [
            f"{name}: " + " ".join(self._random.choice((*names, '"a"', "/b+/", "|", "(", "a?")) for _ in range(4))
            for name in names
        ]
        return "\n".join(["start: r0", *lines])

    def template(self, depth: int) -> str:
        """Return a chat template, nested as deep."""
        choose = self._random.choice
        inner = self.template(depth - 1) if depth else "x"
        loop = choose(("messages", "range(3)", "range(100000)", "tools or []"))
        return choose((
            "{{ " + choose(EXPRESSIONS) + " }}" + inner,
            "{% for a in " + loop + " %}" + inner + "{% endfor %}",
            "{% macro m() %}{{ m() }}" + inner + "{% endmacro %}{{ m() }}",
            "{% if tools %}" + inner + "{% else %}" + inner + "{% endif %}",
            "{{ raise_exception('no') }}" + inner,
            "{% set a = messages %}{%" + inner,
        ))  # fmt: skip
