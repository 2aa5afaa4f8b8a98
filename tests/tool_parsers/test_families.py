"""Each family's tool calls: its template shows the format, and its answers are read whole and at every split."""

import json
from typing import Any

import pytest

from lmwire_protocol import Function, Tool
from lmwire_worker.output_parsing import start_state
from lmwire_worker.prompts.model_syntax import find_syntax, find_tool_format
from lmwire_worker.tool_parsers import FORMATS, ToolFormat, WrittenCall
from support.models.family_variants import ALL_TURNS
from support.models.tool_families import ANSWERS
from support.process.family_worker import tokenizer_of
from support.runners.answer_parts import parts_of

PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
EDIT = Tool(function=Function(name="edit", parameters=PARAMETERS))


def read(tool_format: ToolFormat, pieces: Any) -> list[tuple[str, Any]]:
    """Return the whole calls of a section that comes in pieces."""
    parser = tool_format.make_parser([EDIT])
    fragments = [fragment for piece in pieces for fragment in parser.push(piece)] + parser.end()[0]
    names = [fragment.name for fragment in fragments if fragment.name]
    texts = ["".join(part.arguments for part in fragments if part.index == index) for index in range(len(names))]
    assert all(fragment.complete is not False for fragment in fragments)
    return list(zip(names, map(json.loads, texts), strict=True))


def body(tool_format: ToolFormat, text: str) -> str:
    text = text.partition(tool_format.start)[2]
    return text.partition(tool_format.end)[0] if tool_format.end else text


@pytest.mark.parametrize("name", ALL_TURNS)
def test_the_template_shows_the_format(name: str) -> None:
    turns = ALL_TURNS[name]
    assert find_tool_format(tokenizer_of(turns), turns.model_type).name == (turns.found_as or name)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_section_is_read_whole_and_at_every_split(name: str) -> None:
    answer, arguments = ANSWERS[name]
    text = body(FORMATS[name], answer)
    expected = [("edit", arguments)]
    assert read(FORMATS[name], [text]) == read(FORMATS[name], text) == expected
    for place in range(len(text)):
        assert read(FORMATS[name], [text[:place], text[place:]]) == expected


@pytest.mark.parametrize("name", ALL_TURNS)
def test_an_answer_with_reasoning_is_read_whole_and_at_every_split(name: str) -> None:
    turns = ALL_TURNS[name]
    text = turns.answer("Look first.")
    syntax = find_syntax(tokenizer_of(turns), turns.model_type)
    state = start_state(syntax, turns.opening + turns.opens)
    for pieces in ([text], text, *([text[:place], text[place:]] for place in range(len(text)))):
        parts = parts_of(pieces, syntax, state, tools=[EDIT])
        *thoughts, (kind, _, function, arguments, end) = [part for part in parts if "".join(part[1:]).strip()]
        assert (kind, function, json.loads(arguments), end) == ("call", "edit", {"path": "a.c", "line": 2}, "whole")
        assert [(channel, thought.strip()) for channel, thought in thoughts] == (
            [("reasoning", "Look first.")] if turns.thought else []
        )


@pytest.mark.parametrize("name", FORMATS)
def test_a_written_call_is_read_back(name: str) -> None:
    arguments = {"path": 'x "y"\n', "line": 12, "tags": ["a"]}
    text = FORMATS[name].write([WrittenCall("edit", arguments, "abcdefghi")])
    if name == "functionary_v3_2":  # its start marker ends the prompt
        text = text.removeprefix(">>>")
        assert read(FORMATS[name], [text]) == [("edit", arguments)]
    else:
        assert read(FORMATS[name], [body(FORMATS[name], text) if FORMATS[name].start else text]) == [
            ("edit", arguments)
        ]


def test_an_id_after_the_arguments_is_the_calls() -> None:
    parser = FORMATS["mistral_nemo"].make_parser([EDIT])
    text = '[{"name": "edit", "arguments": {"line": 1}, "id": "a1b2c3d4e"}]'
    fragments = [part for letter in text for part in parser.push(letter)]
    assert [(part.name, part.call_id, part.arguments) for part in fragments] == [("edit", "a1b2c3d4e", '{"line":1}')]


STRAY = {
    "gemma4": "<|tool_call>call:edit{line:1}<tool_call|><tool_call|><|tool_response>Done.",
    "deepseek_v3_1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>edit<｜tool▁sep｜>{"line": 1}<｜tool▁call▁end｜>'
    "<｜tool▁calls▁end｜><｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>Done.<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
    "mistral": '[TOOL_CALLS]edit[ARGS]{"line": 1}Done.',
}


@pytest.mark.parametrize("name", STRAY)
def test_what_a_model_writes_after_a_call_is_content_without_markers(name: str) -> None:
    turns, text = ALL_TURNS[name], STRAY[name]
    syntax = find_syntax(tokenizer_of(turns), turns.model_type)
    for pieces in ([text], text, *([text[:place], text[place:]] for place in range(len(text)))):
        parts = parts_of(pieces, syntax, "content", tools=[EDIT])
        assert [part[0] for part in parts] == ["call", "content"]
        assert parts[1] == ("content", "Done.")
