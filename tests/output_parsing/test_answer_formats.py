"""Answers that call tools in every format: parsed, separated, and returned as text if they prove invalid."""

import json
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.output_parsing import OutputParser, Syntax, TextFragment
from lmwire_worker.tool_parsers import FORMATS
from support.models.tool_samples import ONE_CALL, SAMPLE, WRITERS, Call, tool
from support.nightly import nightly_but
from support.runners.answer_parts import HARMONY, TAGS, cut, joined, syntax_of

TOOLS = [tool("get_weather"), tool("add")]
WEATHER: Call = ("get_weather", {"city": "Zürich 東京 👩‍👩‍👧", "days": 3})
SUM: Call = ("add", {"tags": [1, 2.5]})
SYNTAXES = {
    name: syntax_of(*HARMONY, model_type="gpt_oss", tools=tools) if name == "harmony" else syntax_of(*TAGS, tools=tools)
    for name, tools in FORMATS.items()
}

every_format = pytest.mark.parametrize("name", FORMATS)
with_an_end = pytest.mark.parametrize("name", [name for name, tools in FORMATS.items() if tools.end])


SAID = {
    "harmony": "<|start|>assistant<|channel|>final<|message|>{}<|end|>",
    "muse_spark": "<|start|>assistant to=user<|message|>{}<|eom|>",
    "solar_open": "<|begin|>assistant<|content|>{}<|end|>",
    "functionary_v3_2": ">>>all\n{}",
}
"""The content before a call or after one, in families with messages."""
REASONED = {
    "harmony": "<|channel|>analysis<|message|>{}<|end|>",
    "muse_spark": "to=self<|message|>{}<|eom|>",
    "solar_open": "<|think|>{}<|end|>",
}
MARKED = [name for name, tools in FORMATS.items() if tools.start and name != "functionary_v3_2"]
"""Formats whose calls have a marker, which counts as text in an invalid call."""


def section(name: str, *calls: Call) -> str:
    to = "<|start|>assistant to=f<|message|>" if name == "muse_spark" else ""
    return to + FORMATS[name].start + WRITERS[name](calls) + FORMATS[name].end


def said(name: str, text: str) -> str:
    """Return text as the model writes it before a call or after one."""
    return SAID.get(name, "{}").format(text)


def reasoning(name: str, text: str) -> str:
    return REASONED.get(name, "<think>{}</think>").format(text)


def separated(name: str, cuts: Iterable[str], *, finished: bool = True, reads_calls: bool = True) -> list[object]:
    """Texts with their channels, and whole calls; calls that were taken back are left out."""
    syntax: Syntax = SYNTAXES[name]
    answer = OutputParser(syntax, syntax.initial, TOOLS, reads_calls)
    parts = [part for part_of_text in cuts for part in answer.push(part_of_text)]
    found: list[object] = []
    for part in joined(parts + answer.end(finished)):
        if part[0] != "call":
            found.append(part)
        elif part[-1] == "whole":
            found.append((part[2], json.loads(part[3])))
    return found


@pytest.mark.parametrize("name", nightly_but(SAMPLE, MARKED))
def test_a_call_after_reasoning_and_text(name: str) -> None:
    text = reasoning(name, "a") + said(name, "Let me see: ") + section(name, WEATHER)
    expected = [("reasoning", "a"), ("content", "Let me see: "), WEATHER]
    assert separated(name, [text]) == expected
    assert separated(name, text) == expected
    for place in range(len(text)):
        assert separated(name, [text[:place], text[place:]]) == expected


@every_format
def test_a_call_that_opens_the_answer(name: str) -> None:
    assert separated(name, section(name, WEATHER)) == [WEATHER]


@with_an_end
def test_text_between_calls_and_after_them(name: str) -> None:
    between = "<|eom|>" if name == "muse_spark" else ""
    text = section(name, WEATHER) + between + said(name, " and ") + section(name, SUM) + between + said(name, "\nDone.")
    assert separated(name, text) == [WEATHER, ("content", " and "), SUM, ("content", "\nDone.")]


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - ONE_CALL))
def test_calls_of_one_section(name: str) -> None:
    assert separated(name, section(name, WEATHER, SUM)) == [WEATHER, SUM]


@every_format
def test_a_call_whose_end_is_missing_because_the_turn_is_over(name: str) -> None:
    text = section(name, WEATHER)
    assert separated(name, text[: len(text) - len(FORMATS[name].end)]) == [WEATHER]


@pytest.mark.parametrize("name", nightly_but(SAMPLE, MARKED))
def test_a_call_that_is_cut_off_anywhere_is_its_text(name: str) -> None:
    text = section(name, WEATHER)
    for end in range(text.index(FORMATS[name].start) + len(FORMATS[name].start), len(text)):
        found = separated(name, text[:end], finished=False)
        # In JSON and the like a call is whole before its section is.
        assert found == [("content", text[:end])] or found[0] == WEATHER, end


@pytest.mark.parametrize("name", MARKED)
def test_a_call_that_cannot_be_read_is_text_with_its_markers(name: str) -> None:
    text = FORMATS[name].start + '("{' + FORMATS[name].end
    assert separated(name, text) == [("content", text)]


@pytest.mark.parametrize("name", MARKED)
def test_without_tools_calls_are_text(name: str) -> None:
    text = section(name, WEATHER)
    shown = text.removesuffix("<|call|>") if name == "harmony" else text
    assert separated(name, text, reads_calls=False) == [("content", shown)]


def test_a_call_of_llama_needs_no_marker() -> None:
    name, text = "llama3_json", json.dumps({"name": "add", "parameters": {"tags": [1, 2.5]}})
    assert separated(name, text) == [SUM]
    assert separated(name, reasoning(name, "a") + text) == [("reasoning", "a"), SUM]
    assert separated(name, f"No: {text}") == [("content", f"No: {text}")]
    assert separated(name, '{"name": "Ada", "age": 36}') == [("content", '{"name": "Ada", "age": 36}')]


def test_code_that_llama_marks_is_text_as_soon_as_it_can_be_no_call() -> None:
    syntax = SYNTAXES["llama3_json"]
    answer = OutputParser(syntax, syntax.initial, TOOLS, parses_calls=True)
    assert answer.push("<|python_tag|>pri") == [TextFragment("content", "<|python_tag|>pri")]
    assert answer.push("nt(1)") == [TextFragment("content", "nt(1)")]


def fragments(name: str) -> list[str]:
    """Return a strategy for parts of an answer in this format, in any order."""
    words = re.findall(r"\w+|\s+|\W", section(name, WEATHER, SUM))
    return sorted({*words, FORMATS[name].start, FORMATS[name].end, WRITERS[name]([SUM]), "<think>", "</think>"})


@given(st.data())
@pytest.mark.parametrize("name", nightly_but(SAMPLE, FORMATS))
def test_it_does_not_matter_how_any_text_is_cut(name: str, data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(fragments(name)), max_size=20)))
    places = data.draw(st.lists(st.integers(0, 500), max_size=10))
    finished = data.draw(st.booleans())
    assert separated(name, cut(text, places), finished=finished) == separated(name, [text], finished=finished)
