"""Calls whose tags are not all there, or that stand between the marks of another format."""

import json
from typing import Any

import pytest

from lmwire_protocol import Function, Tool
from lmwire_worker.tool_parsers import FORMATS, TaggedCall, WrittenCall
from support.runners.answer_parts import parts_of, syntax_of

PROPERTIES = {"path": {"type": "string"}, "line": {"type": "integer"}}
TOOLS = [
    Tool(function=Function(name="edit", parameters={"type": "object", "properties": PROPERTIES})),
    Tool(function=Function(name="now")),
]
ARGUMENTS = {"path": "a < b", "line": 2}
EDIT = WrittenCall("edit", ARGUMENTS, "id0000000")
READ = ("edit", ARGUMENTS)
JSON = f'{{"name": "edit", "arguments": {json.dumps(ARGUMENTS)}}}'
SHAPES = {name: form.shape for name, form in FORMATS.items() if isinstance(form.shape, TaggedCall)}
LONG_STARTS = ("kimi_k3", "muse_spark", "minicpm5")
"""Formats whose sections start with more than a marker, so that a call in JSON has no place in them."""
RECOVERING = [name for name, shape in SHAPES.items() if shape.recovers and name not in ("kimi_k3", "muse_spark")]


def read(name: str, text: str, **options: Any) -> tuple[str, list[tuple[str, Any]]]:
    """Return the content and the whole calls of an answer, which are the same wherever it is cut."""
    syntax = syntax_of(tools=FORMATS[name], **options)
    whole, *others = (
        parts_of(pieces, syntax, tools=TOOLS)
        for pieces in ([text], text, *([text[:place], text[place:]] for place in range(1, len(text))))
    )
    assert all(other == whole for other in others)
    content = "".join(part[1] for part in whole if part[0] == "content")
    return content, [(part[2], json.loads(part[3])) for part in whole if part[0] == "call" and part[4] == "whole"]


@pytest.mark.parametrize("name", RECOVERING)
@pytest.mark.parametrize("which", [0, 1])
def test_a_value_may_lack_its_end(name: str, which: int) -> None:
    text, end = FORMATS[name].write([EDIT]), SHAPES[name].end.strip()
    parts = text.split(end)
    text = end.join(parts[: which + 1]) + end.join(parts[which + 1 :])
    assert read(name, text) == ("", [READ])


@pytest.mark.parametrize("name", [name for name in RECOVERING if SHAPES[name].tail])
def test_the_sections_end_may_stand_for_the_calls(name: str) -> None:
    text = FORMATS[name].write([EDIT]).replace(SHAPES[name].tail.strip(), "")
    assert read(name, text) == ("", [READ])


@pytest.mark.parametrize("name", [name for name in SHAPES if FORMATS[name].end and name not in LONG_STARTS])
def test_a_section_of_tags_may_hold_a_call_in_json(name: str) -> None:
    form = FORMATS[name]
    assert read(name, f"{form.start}\n{JSON}\n{form.end}") == ("", [READ])
    other = f"{form.start}{JSON.replace('edit', 'find')}{form.end}"
    assert read(name, other) == (other, [])


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n[{JSON}]\n```",
        f"```\n{JSON}\n```",
        f"<tool_call>\n{JSON}\n</tool_call>",
        f"[TOOL_CALLS][{JSON}]",
    ],
)
@pytest.mark.parametrize("before", ["", "I look at `[0]`.\n", "<think>Hm.</think>", "```\nx\n```\nNow:\n"])
def test_a_list_of_calls_may_stand_between_other_marks(text: str, before: str) -> None:
    assert read("bare_json", before + text) == (before, [READ])


def test_a_list_of_calls_may_follow_the_end_of_reasoning_and_no_other_text() -> None:
    assert read("bare_json", f"Hm.</think>\n[{JSON}]") == ("Hm.</think>", [READ])
    assert read("bare_json", f"</think>\n[{JSON}]") == ("", [READ])
    assert read("bare_json", f"Such as [{JSON}]") == (f"Such as [{JSON}]", [])


@pytest.mark.parametrize("text", ["```json\n[1]\n```", "```\n{}\n```", "[TOOL_CALLS] is a mark.", "a <tool_call> b"])
def test_marks_around_other_text_are_text(text: str) -> None:
    assert read("bare_json", text) == (text, [])


@pytest.mark.parametrize(("name", "start"), [("phi4_mini", "functools["), ("granite3", "<tool_call>[")])
def test_nothing_of_a_list_is_content(name: str, start: str) -> None:
    assert read(name, f"{start}{JSON}, {JSON}]") == ("", [READ, READ])


def test_a_call_that_breaks_off_does_not_hide_the_next() -> None:
    broken = WrittenCall("edit", {"path": "a"})
    text = FORMATS["kimi_k2"].write([broken, EDIT]).replace('"a"}', '"a"')
    content, calls = read("kimi_k2", text)
    assert calls == [READ]
    assert '{"path": "a"' in content


def test_all_arguments_in_one_tag_may_be_called_a_string_or_be_written_in_python() -> None:
    tag = '<｜DSML｜parameter name="input" string="true">{"line": 1}</｜DSML｜parameter>'
    text = f'<｜DSML｜tool_calls><｜DSML｜invoke name="edit">{tag}</｜DSML｜invoke></｜DSML｜tool_calls>'
    assert read("dsml_tool_calls", text) == ("", [("edit", {"line": 1})])
    text = "<function name=\"edit\"><param name=\"properties\">{'path': 'a', 'line': 1}</param></function>"
    assert read("minicpm5", text) == ("", [("edit", {"path": "a", "line": 1})])


@pytest.mark.parametrize("name", ["qwen3_coder", "seed_oss", "minimax_m2", "dsml_tool_calls"])
def test_the_end_of_a_value_may_stand_alone(name: str) -> None:
    end = SHAPES[name].end.strip()
    for call in (EDIT, WrittenCall("now", {})):
        text = FORMATS[name].write([call])
        tail = SHAPES[name].tail.strip()
        assert read(name, text.replace(tail, f"{end}\n{tail}")) == ("", [(call.name, call.arguments)])


def test_values_may_stand_on_the_line_of_their_tags_and_lack_their_ends() -> None:
    text = "I edit.\n\n<function=edit>\n<parameter=path>a.c\n<parameter=line>2\n</function>"
    assert read("qwen3_coder", text) == ("I edit.\n\n", [("edit", {"path": "a.c", "line": 2})])
    again = "<function=now>\n</function>\n" * 2
    assert read("qwen3_coder", again) == ("", [("now", {})] * 2)


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("kimi_k3", "muse_spark", "minicpm5")])
def test_an_end_tag_before_other_text_is_part_of_the_value(name: str) -> None:
    path = f"Write {SHAPES[name].end.strip()} at the end. {'And so on. ' * 9}"
    text = FORMATS[name].write([WrittenCall("edit", {"path": path, "line": 1})])
    assert read(name, text) == ("", [("edit", {"path": path, "line": 1})])
