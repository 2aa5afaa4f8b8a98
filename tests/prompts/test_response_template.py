"""A tokenizer's `response_template` says how to read answers, if a call written as it says can be read back."""

import json
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordLevel
from transformers.utils.chat_parsing import parse_response

from lmwire_protocol import Function, Tool
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.output_parsing import OutputParser, TextFragment
from lmwire_worker.prompts.model_syntax import find_syntax, tool_format_note
from lmwire_worker.prompts.response_template import MAX_CHARACTERS, read_response_template

MESSAGES = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
OPENAI = {"type": "function", "function": "{content}"}
NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
RENAMED = {"type": "function", "function": {"name": "{content.tool_name}", "arguments": "{content.parameters}"}}
EACH = {"type": "function", "function": {"name": "{name}", "arguments": "{parameters}"}}
TOOLS = [
    Tool(
        function=Function(
            name="edit", parameters={"properties": {"path": {"type": "string"}, "line": {"type": "string"}}}
        )
    )
]
HTML = {"tag_pattern": r"<arg\s+name=(?P<key>[^>\]]+)>\s*(?P<value>.*?)\s*</arg>"}
SHAPES: dict[str, tuple[dict[str, Any], str, str]] = {
    "JSON between known markers": (
        {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": OPENAI,
        },
        '<tool_call>{"name": "edit", "arguments": {"path": "a.c", "line": "2"}}</tool_call>',
        "json_tools",
    ),
    "JSON between other markers": (
        {"open": ["<qv:do>", "<qv:run>"], "close": "</qv:do>", "repeats": True, "content": "json", "transform": OPENAI},
        '<qv:do>{"name": "edit", "arguments": {"path": "a.c", "line": "2"}}</qv:do>',
        "response_template",
    ),
    "JSON with other names": (
        {"open": "<|qv|>", "close": "<|/qv|>", "content": "json", "transform": RENAMED},
        '<|qv|>{"tool_name": "edit", "parameters": {"path": "a.c", "line": "2"}}<|/qv|>',
        "response_template",
    ),
    "a list": (
        {
            "open": "<|tool_call|>",
            "close": "<|/tool_call|>",
            "content": "json",
            "transform": EACH,
            "transform_each": True,
        },
        '<|tool_call|>[{"name": "edit", "parameters": {"path": "a.c", "line": "2"}}]<|/tool_call|>',
        "phi4_mini",
    ),
    "a name before JSON": (
        {
            "open_pattern": r"<qv to=(?P<name>[\w.]+)>",
            "close_pattern": r"</qv>(?:\n|$)?",
            "repeats": True,
            "content": "json",
            "transform": NAMED,
        },
        '<qv to=edit>{"path": "a.c", "line": "2"}</qv>',
        "response_template",
    ),
    "known tags": (
        {
            "open_pattern": r"\s*<tool_call>\s*<function=(?P<name>[^>\n]+)>",
            "close_pattern": r"</function>\s*</tool_call>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {"tag_pattern": r"<parameter=(?P<key>[^>\n]+)>\s*(?P<value>.*?)\s*</parameter>"},
            "transform": NAMED,
        },
        "<tool_call>\n<function=edit>\n<parameter=path>\na.c\n</parameter>\n<parameter=line>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        "qwen3_coder",
    ),
    "other tags": (
        {
            "open_pattern": r"<do\s+what=(?P<name>\w+)>",
            "close": "</do>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": HTML,
            "transform": NAMED,
        },
        "<do what=edit><arg name=path>a.c</arg><arg name=line>2</arg></do>",
        "response_template",
    ),
    "bare keys": (
        {
            "open_pattern": r"<\|tool_call>call:(?P<name>\w+)",
            "close": "<tool_call|>",
            "repeats": True,
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
            "transform": NAMED,
        },
        '<|tool_call>call:edit{path:<|"|>a.c<|"|>,line:<|"|>2<|"|>}<tool_call|>',
        "gemma4",
    ),
    "Python": (
        {"open": "<|tool_call_start|>", "close": "<|tool_call_end|>", "content": "python-call-list"},
        "<|tool_call_start|>[edit(path='a.c', line='2')]<|tool_call_end|>",
        "pythonic",
    ),
}

NEWER = {"JSON with other names", "Python"}
"""Shapes that the pinned version of transformers does not know yet."""


def tokenizer(calls: object = None, template: str = MESSAGES, **fields: object) -> Tokenizer:
    """Return a tokenizer whose settings describe answers."""
    settings = {"start_anchor": "assistant: ", "fields": {**({"tool_calls": calls} if calls else {}), **fields}}
    found = Tokenizer(Backend(WordLevel({"?": 0}, "?")), special_tokens={"unk_token": "?"}, response_template=settings)
    found.chat_template = template
    return found


def read(answer: str, found: Any) -> tuple[str, list[tuple[str | None, Any]]]:
    """Return the text of an answer, and its calls."""
    parser = OutputParser(found, found.initial, TOOLS, True)
    fragments = [piece for letter in answer for piece in parser.push(letter)] + parser.end(True)
    text = "".join(piece.text for piece in fragments if isinstance(piece, TextFragment))
    calls = [piece for piece in fragments if not isinstance(piece, TextFragment)]
    names = [piece.name for piece in calls if piece.name]
    arguments = "".join(piece.arguments for piece in calls)
    return text, [(name, json.loads(arguments)) for name in names]


@pytest.mark.parametrize(("field", "answer", "name"), SHAPES.values(), ids=SHAPES)
def test_calls_are_read_as_the_template_describes_them(field: dict[str, Any], answer: str, name: str) -> None:
    found = find_syntax(tokenizer(field, content={"content": "text"}), "llama")
    assert read(answer, found) == ("", [("edit", {"path": "a.c", "line": "2"})])
    assert (found.tools and found.tools.name, found.assumes_tools, found.unread) == (name, False, ())


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in NEWER])
def test_transformers_reads_the_same_calls(shape: str) -> None:
    field, answer, _ = SHAPES[shape]
    message = parse_response(answer, tokenizer(field).response_template, prefix="")
    (call,) = message["tool_calls"]
    function = call.get("function", call)
    assert function == {"name": "edit", "arguments": {"path": "a.c", "line": "2"}}


def test_reasoning_stands_between_the_markers_of_its_field() -> None:
    thought = {"open": "<qv:muse>\n", "close": "\n</qv:muse>", "content": "text"}
    found = find_syntax(tokenizer(reasoning_content=thought), "llama")
    assert (found.think_start, found.think_end) == ("<qv:muse>", "</qv:muse>")
    assert find_syntax(tokenizer(reasoning_content=thought), "llama", ("<a>", "</a>")).think_start == "<a>"


def test_a_format_that_the_load_names_goes_first() -> None:
    field, _, _ = SHAPES["JSON between other markers"]
    found = find_syntax(tokenizer(field), "llama", tool_format="mistral_nemo")
    assert found.tools and found.tools.name == "mistral_nemo"
    assert tool_format_note(found) is None


def test_a_description_that_cannot_read_what_the_chat_template_writes_is_named_and_not_used() -> None:
    calls = "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for call in m.tool_calls %}[TOOL_CALLS]"
    calls += "{{ call.function.name }}[ARGS]{{ call.function.arguments | tojson }}{% endfor %}\n{% endfor %}"
    field, _, _ = SHAPES["JSON between known markers"]
    found = find_syntax(tokenizer(field, calls), "llama")
    assert found.tools and found.tools.name == "mistral"
    assert "response_template: tool_calls." in (tool_format_note(found) or "")


@pytest.mark.parametrize(
    "change",
    [
        {"content": "kv-lines"},
        {"transform": {"type": "function", "function": {"name": "fixed", "arguments": "{content}"}}},
        {"open": ""},
        {"open": 7},
        {"open": "x" * 600},
        {"open": None, "open_pattern": r"(?=<a>)<a>"},
        {"open": None, "open_pattern": "<([a-z]+)+>"},
        {"open": None, "open_pattern": "(?:" * 99 + "a" + ")" * 99},
        {"open": None, "open_pattern": "(?P<name>["},
        {"content_args": {"string_delims": 3}},
    ],
)
def test_a_field_that_is_not_read_is_named(change: dict[str, Any]) -> None:
    field, _, _ = SHAPES["JSON between other markers"]
    found = find_syntax(tokenizer(field | change, citations={"open": "<co>", "close": "</co>"}), "llama")
    assert found.unread == ("tool_calls", "citations")
    assert "response_template: tool_calls, citations." in (tool_format_note(found) or "")
    assert found.assumes_tools


@pytest.mark.parametrize(
    "given", [[], "x", {"fields": []}, {"version": 2, "fields": {}}, {"fields": {"content": "x" * MAX_CHARACTERS}}]
)
def test_settings_that_are_no_description_are_named(given: object) -> None:
    found = read_response_template(given)
    assert found is not None and found.unread == ("all",)
    assert read_response_template(None) is None
