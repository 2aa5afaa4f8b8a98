"""Calls in JSON without a marker: the whole content is calls of offered functions, or it is text."""

import pytest

from lmwire_protocol import Function, Tool
from lmwire_worker.output_parsing import OutputParser, Syntax
from lmwire_worker.tool_parsers import FORMATS
from support.runners.answer_parts import TAGS, joined, tokenizer_with

TOOLS = [Tool(function=Function(name="lookup", parameters={"type": "object", "properties": {"q": {}}}))]
CALL = '{"name": "lookup", "arguments": {"q": "a"}}'
READ = ("call", "0", "lookup", '{"q":"a"}', "whole")
FORMS = ("json_tools", "qwen3_coder", "mistral", "gemma3_code", "pythonic")


def syntax(name: str) -> Syntax:
    return Syntax.of(tokenizer_with(*TAGS), "llama", FORMATS[name])


def parts(name: str, pieces: list[str], *, finished: bool = True) -> list[tuple[str, ...]]:
    found = syntax(name)
    parser = OutputParser(found, found.initial, TOOLS, True)
    fragments = [fragment for piece in pieces for fragment in parser.push(piece)]
    return joined(fragments + parser.end(finished))


def of_every_cut(name: str, text: str) -> list[tuple[str, ...]]:
    """Return the parts of a text, which are the same wherever it is cut."""
    whole = parts(name, [text])
    assert parts(name, list(text)) == whole
    for place in range(len(text)):
        assert parts(name, [text[:place], text[place:]]) == whole
    return whole


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"\n{CALL}\n",
        f"[{CALL}]",
        f"```json\n{CALL}\n```",
        f"```\n[{CALL}]\n```",
        '{"type": "function", "function": {"name": "lookup", "parameters": {"q": "a"}}}',
    ],
)
def test_content_that_is_a_call_and_nothing_else_is_one(name: str, text: str) -> None:
    assert of_every_cut(name, text) == [READ]


def test_several_calls_and_reasoning_before_them_are_read() -> None:
    assert of_every_cut("json_tools", f"<think>b</think>[{CALL}, {CALL}]") == [
        ("reasoning", "b"),
        READ,
        ("call", "1", *READ[2:]),
    ]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    "text",
    [
        f"Use {CALL}",
        f"{CALL} does it.",
        f"```json\n{CALL}\n``` does it.",
        '{"name": "other", "arguments": {}}',
        '{"name": "lookup"}',
        '{"name": "lookup", "arguments": 1}',
        '{"answer": 1}',
        '{"name": "lookup", "arguments": {',
        "```python\nprint(1)\n```",
        "{",
        "``",
    ],
)
def test_other_content_stays_text(name: str, text: str) -> None:
    assert of_every_cut(name, text) == [("content", text)]


def test_a_call_that_the_limit_of_tokens_ended_is_text() -> None:
    assert parts("json_tools", [CALL], finished=False) == [("content", CALL)]


def test_json_of_another_kind_is_delivered_at_once() -> None:
    found = syntax("json_tools")
    parser = OutputParser(found, found.initial, TOOLS, True)
    assert joined(parser.push('{"answer": 1')) == [("content", '{"answer": 1')]
    assert joined(parser.push("2")) == [("content", "2")]
