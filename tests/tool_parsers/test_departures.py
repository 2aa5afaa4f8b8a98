"""Answers that depart from their templates: white space, values that may be null, and missing tags."""

import json
from typing import Any

import pytest

from lmwire_protocol import Function, Tool
from lmwire_worker.output_parsing import CONTENT, FAMILIES, Syntax
from lmwire_worker.tool_parsers import FORMATS, JsonCall, WrittenCall
from support.models.tool_samples import ONE_CALL
from support.runners.answer_parts import TAGS, parts_of, tokenizer_with

PARAMETERS = {
    "properties": {
        "text": {"type": "string"},
        "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "share": {"type": ["number", "null"]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array"},
    }
}
TOOLS = [Tool(function=Function(name=name, parameters=PARAMETERS)) for name in ("edit", "find")]
IN_TAGS = sorted(name for name in FORMATS.keys() - FAMILIES if not isinstance(FORMATS[name].shape, JsonCall))
"""Formats whose arguments are not JSON. A call of the other families is a message with a header."""
SEVERAL = sorted(
    name
    for name in FORMATS.keys() - ONE_CALL
    if name not in FAMILIES and (FORMATS[name].between_calls, FORMATS[name].between_sections) != (None, None)
)


def read(name: str, text: str) -> list[tuple[str, ...]]:
    """Return the parts of an answer, which are the same wherever it is cut."""
    syntax = Syntax.of(tokenizer_with(*TAGS), "llama", FORMATS[name])
    whole = parts_of([text], syntax, CONTENT, tools=TOOLS)
    assert parts_of(text, syntax, CONTENT, tools=TOOLS) == whole
    for place in range(len(text)):
        assert parts_of([text[:place], text[place:]], syntax, CONTENT, tools=TOOLS) == whole
    return whole


def called(parts: list[tuple[str, ...]]) -> list[tuple[str, Any]]:
    """Return the calls of an answer that has nothing else."""
    assert all(part[0] == "call" and part[4] == "whole" for part in parts), parts
    return [(part[2], json.loads(part[3])) for part in parts]


def call(index: int, arguments: dict[str, Any]) -> WrittenCall:
    """Return a call of the tool of this number, with an id that all formats take."""
    return WrittenCall(("edit", "find")[index], arguments, f"abcdefgh{index}")


@pytest.mark.parametrize("name", IN_TAGS)
def test_white_space_at_the_ends_of_a_string_is_kept(name: str) -> None:
    arguments = {"text": "    a = 1\n\n", "note": "\n\tb "}
    assert called(read(name, FORMATS[name].write([call(0, arguments)]))) == [("edit", arguments)]


@pytest.mark.parametrize("name", IN_TAGS)
def test_a_parameter_that_may_be_null_has_the_type_of_its_value(name: str) -> None:
    arguments = {"count": 5, "share": 0.5, "note": "5", "tags": [1, "a"]}
    assert called(read(name, FORMATS[name].write([call(0, arguments)]))) == [("edit", arguments)]
    if name != "minimax_m3":  # it leaves out what is null
        nothing = {"count": None, "share": None, "text": "null"}
        assert called(read(name, FORMATS[name].write([call(0, nothing)]))) == [("edit", nothing)]


@pytest.mark.parametrize("name", SEVERAL)
def test_white_space_between_and_after_calls_is_no_content(name: str) -> None:
    one, other = {"text": "a"}, {"text": "b"}
    found, calls = FORMATS[name], [call(0, one), call(1, other)]
    sections = [calls] if found.between_sections is None else [[each] for each in calls]
    text = "\n\n".join(map(found.write, sections))
    assert called(read(name, f"{text}\n")) == [("edit", one), ("find", other)]


QWEN = """\
<function=edit>
<parameter=text>
  a
</parameter>
<parameter=count>
2
</parameter>
</function>
</tool_call>"""


@pytest.mark.parametrize(
    "text",
    [
        QWEN,
        f"<tool_call>\n{QWEN}",
        QWEN.replace("\n</parameter>\n<parameter=count", "\n<parameter=count"),
        f"<tool_call>\n{QWEN}".replace("\n</parameter>\n<parameter=count", "\n<parameter=count"),
        f"<tool_call>\n{QWEN}".replace("2\n</parameter>", "2"),
        f"<tool_call>\n{QWEN}".replace("</parameter>\n", ""),
        QWEN.removesuffix("\n</tool_call>"),
    ],
    ids=["no start", "whole", "neither", "no end of the first", "no end of the last", "no ends", "no markers"],
)
def test_qwen3_coder_may_leave_out_the_start_and_the_ends_of_parameters(text: str) -> None:
    assert called(read("qwen3_coder", text)) == [("edit", {"text": "  a", "count": 2})]


def test_text_before_a_call_without_its_start_stays_text() -> None:
    said, later = read("qwen3_coder", f"I edit it.\n{QWEN}")
    assert (said[0], said[1].strip()) == ("content", "I edit it.")
    assert called([later]) == [("edit", {"text": "  a", "count": 2})]
