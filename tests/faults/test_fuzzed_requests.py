"""Random schemas, expressions, grammars and templates: each request ends once, and the worker and its streams go on.

LMWIRE_FUZZ_SECONDS sets the duration, and LMWIRE_FUZZ_SEED repeats the requests of that seed.
"""

import os
import random
import time
from pathlib import Path
from typing import Any

from support.media.fuzzing import fuzz_seconds
from support.models.long_context import MAX_TOKENS, write_long_context
from support.process.worker_process import Event, WorkerProcess

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
        kind = self._random.choice(("schema", "regex", "lark", "template", "tool"))
        asked: Event = {"cmd": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
        if kind == "template":
            return asked | {"chat_template": self._template(4)}
        if kind == "tool":
            function = {"name": "f", "parameters": self._schema(4), "strict": True}
            return asked | {"tools": [{"type": "function", "function": function}], "truncate": "left"}
        if kind == "schema":
            return asked | {"format": {"type": "json_schema", "schema": self._schema(5)}}
        if kind == "regex":
            return asked | {"format": {"type": "regex", "pattern": self._pattern(6) or "a"}}
        return asked | {"format": {"type": "lark", "grammar": self._lark()}}

    def _schema(self, depth: int) -> Any:
        choose = self._random.choice
        schema: Event = {}
        for _ in range(self._random.randrange(4)):
            key = choose((*KEYS, "type", "enum", "const", "$ref", "multipleOf", "minimum", "maxLength", "minItems"))
            inner = self._schema(depth - 1) if depth else {"type": "string"}
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
            schema["$defs"] = {"a": self._schema(3)}
        return schema

    def _pattern(self, depth: int) -> str:
        choose = self._random.choice
        if not depth:
            return choose(ATOMS)
        left, right = self._pattern(depth - 1), self._pattern(choose(range(depth)))
        return choose(
            (left, left + right, f"({left}|{right})", f"({left}){{{choose((1, 7, 900))}}}", f"({left})*", "(")
        )

    def _lark(self) -> str:
        names = [f"r{index}" for index in range(self._random.choice((1, 3, 40)))]
        lines = [
            f"{name}: " + " ".join(self._random.choice((*names, '"a"', "/b+/", "|", "(", "a?")) for _ in range(4))
            for name in names
        ]
        return "\n".join(["start: r0", *lines])

    def _template(self, depth: int) -> str:
        choose = self._random.choice
        inner = self._template(depth - 1) if depth else "x"
        loop = choose(("messages", "range(3)", "range(100000)", "tools or []"))
        return choose((
            "{{ " + choose(EXPRESSIONS) + " }}" + inner,
            "{% for a in " + loop + " %}" + inner + "{% endfor %}",
            "{% macro m() %}{{ m() }}" + inner + "{% endmacro %}{{ m() }}",
            "{% if tools %}" + inner + "{% else %}" + inner + "{% endif %}",
            "{{ raise_exception('no') }}" + inner,
            "{% set a = messages %}{%" + inner,
        ))  # fmt: skip


def test_each_request_ends_once_and_a_stream_beside_goes_on(tmp_path: Path) -> None:
    seed = int(os.environ.get("LMWIRE_FUZZ_SEED", time.time_ns() % 2**32))
    inventor = Inventor(seed)
    count = 0
    with WorkerProcess() as worker:
        worker.load(write_long_context(tmp_path / "model"))
        ends_at = time.monotonic() + fuzz_seconds()
        while time.monotonic() < ends_at:
            count += 1
            request = inventor.request()
            stream, odd = f"stream {count}", f"odd {count}"
            endless = {"cmd": "generate", "prompt": "Once", "ignore_eos": True, "max_tokens": MAX_TOKENS}
            worker.send({"id": stream, **endless})
            worker.first_token(stream)
            worker.send({"id": odd, **request})
            seen = len(worker.of(stream))
            ended = worker.terminal(odd)
            assert ended.get("code") in (None, "invalid_request", "unsupported", "context_overflow"), (seed, request)
            worker.wait_for(lambda event, stream=stream, seen=seen: len(worker.of(stream)) > seen)
            worker.call({"id": f"stop {count}", "cmd": "cancel", "target": stream})
            worker.terminal(stream)
            terminals = [event for event in worker.of(odd) if event["event"] in ("done", "error")]
            assert terminals == [ended], (seed, request)
    assert count
