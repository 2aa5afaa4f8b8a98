"""Random grammars and templates in the sandbox: each has an answer or exceeds a limit, and the next one is answered.

LMWIRE_FUZZ_SECONDS sets the duration, and LMWIRE_FUZZ_SEED repeats the programs of that seed.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmwire_protocol import Generate, RequestError
from lmwire_protocol.formats import Format, JsonSchemaFormat, LarkFormat, RegexFormat
from lmwire_worker.sandbox import LimitExceeded, Sandbox, process
from support.media.fuzzing import fuzz_seconds
from support.models.invented_requests import Inventor
from support.runners.constrained import Speaker, write_tokenizer

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "\ud800", "tool_calls": []}]
FORMATS: tuple[Format, ...] = (
    RegexFormat("(a|b|c){1,900}" * 9),
    RegexFormat("(" * 5000 + "a" + ")" * 5000),
    LarkFormat("start: start start | \"a\""),
    LarkFormat("start: /" + "(a?){99}" * 99 + "/"),
    JsonSchemaFormat({"$ref": "#"}),
    JsonSchemaFormat({"type": "array", "items": {"$ref": "#"}, "minItems": 10**9}),
    JsonSchemaFormat({"type": "object", "properties": {str(number): {} for number in range(300)}}),
)  # fmt: skip
TEMPLATES = (
    "{% for a in range(99999) %}" * 9 + "{% endfor %}" * 9,
    "{{ 'x' * 10**9 }}",
    "{{ 7 ** 7 ** 7 ** 7 }}",
    "{{ messages|tojson(indent=10**9) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
)  # fmt: skip
PROBE = {"subject": "render", "source": "{{ 6 * 7 }}", "values": {}}


@pytest.fixture(autouse=True)
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a program that exceeds the limit of processor time spend less than in a worker."""
    monkeypatch.setattr(process, "DEFAULT_LIMITS", process.Limits(cpu_seconds=1))


def rounds() -> Iterator[Inventor]:
    """Yield a generator of random programs again and again, until the time is over."""
    inventor = Inventor(int(os.environ.get("LMWIRE_FUZZ_SEED", time.time_ns() % 2**32)))
    ends_at = time.monotonic() + fuzz_seconds()
    while time.monotonic() < ends_at:
        yield inventor


def test_each_grammar_compiles_or_is_refused(tmp_path: Path) -> None:
    speaker = Speaker(write_tokenizer(tmp_path, []))

    def check(format: Format) -> None:
        try:
            speaker.constraint(Generate(prompt="x", format=format))
        except RequestError as refused:
            assert refused.code in ("invalid_request", "unsupported"), format
            assert len(refused.message) < 10_000, format

    for format in FORMATS:
        check(format)
    for inventor in rounds():
        check(JsonSchemaFormat(inventor.schema(5)))
        check(RegexFormat(inventor.pattern(6) or "a"))
        check(LarkFormat(inventor.lark()))


@pytest.mark.slow
def test_each_template_writes_or_fails() -> None:
    sandbox = Sandbox()

    def check(source: str) -> None:
        for subject in ("template", "render", "opened"):
            values = {} if subject == "template" else {"values": {"messages": MESSAGES, "tools": None}}
            try:
                answer = sandbox.ask({"subject": subject, "source": source, **values})
            except LimitExceeded:
                continue
            assert answer.keys() & {"variables", "text", "error", "exhausted"}, source
            assert len(answer.get("error", "")) < 10_000, source

    try:
        for source in TEMPLATES[1:] if fuzz_seconds() < 60 else TEMPLATES:  # the first takes all its time
            check(source)
        for inventor in rounds():
            check(inventor.template(4))
        assert sandbox.ask(PROBE) == {"text": "42"}
    finally:
        sandbox.close()
