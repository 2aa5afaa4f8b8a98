"""The behavior that the parsers of all formats have in common."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.tool_parsers import FORMATS, TaggedCall, ToolCallFragment, ToolFormat, WrittenCall
from support.models.tool_samples import ONE_CALL, SAMPLE, WRITERS, Call, tool
from support.nightly import nightly_but

TOOLS = [tool(name) for name in ("get_weather", "add", "get-weather", "weather.now")]
WEATHER: Call = ("get_weather", {"city": "Paris", "days": 3, "exact": True})
SUM: Call = ("add", {"tags": [1, 2.5], "place": {"at": {"x": [1, {"y": "z"}]}, "on": False}})
WORLD: Call = ("get_weather", {"city": "Zürich, 東京 👩‍👩‍👧 e\u0301", "note": 'C\'est "là"\n\tet \\ ici'})
NO_ARGUMENTS: Call = ("get_weather", {})
LONG: Call = ("get_weather", {"note": "if a < b:\n    print('<p>')\n" * 20 + "done", "city": "Paris"})

every_format = pytest.mark.parametrize("name", FORMATS)
some_formats = pytest.mark.parametrize("name", nightly_but(SAMPLE, FORMATS))
of_several_calls = pytest.mark.parametrize("name", sorted(FORMATS.keys() - ONE_CALL))


@dataclass
class Read:
    """Hold the result of parsing a section."""

    whole: list[Call] = field(default_factory=list)
    broken: int = 0
    rest: str = ""
    pieces: list[ToolCallFragment] = field(default_factory=list)


def read(name: str, pieces: Iterable[str], closed: bool = True) -> Read:
    """Parse a section, and check the rules that hold for every parser."""
    text = "".join(pieces := list(pieces))
    reader = FORMATS[name].make_parser(TOOLS)
    got = [part for piece in pieces for part in reader.push(piece)]
    last, rest = reader.end(closed)
    result = Read(rest=rest, pieces=got + last)
    for index, parts in enumerate(by_call(result.pieces)):
        assert parts[0].index == index
        assert parts[0].name
        assert all(part.name is None and part.call_id is None for part in parts[1:])
        assert [part.complete for part in parts[:-1]] == [None] * (len(parts) - 1)
        if parts[-1].complete:
            result.whole.append((parts[0].name, json.loads("".join(part.arguments for part in parts))))
        else:
            assert parts[-1].complete is False
            result.broken += 1
    assert result.whole or rest == text
    return result


def by_call(pieces: Sequence[ToolCallFragment]) -> list[list[ToolCallFragment]]:
    """Pieces of one call after those of another."""
    calls: list[list[ToolCallFragment]] = []
    for piece in pieces:
        if piece.name is not None:
            calls.append([])
        calls[-1].append(piece)
    return calls


def same(one: Read, other: Read) -> bool:
    return (one.whole, one.rest) == (other.whole, other.rest)


@every_format
@pytest.mark.parametrize("call", [WEATHER, SUM, WORLD, NO_ARGUMENTS, LONG], ids=lambda call: str(call[1])[:20])
def test_a_whole_call_is_read(name: str, call: Call) -> None:
    result = read(name, [WRITERS[name]([call])])
    assert (result.whole, result.rest) == ([call], "")


@every_format
@pytest.mark.parametrize("function", ["get-weather", "weather.now"])
def test_names_may_have_dots_and_dashes(name: str, function: str) -> None:
    assert read(name, [WRITERS[name]([(function, {"days": 1})])]).whole == [(function, {"days": 1})]


@of_several_calls
def test_calls_of_one_section_come_in_order(name: str) -> None:
    calls = [WEATHER, NO_ARGUMENTS, SUM, LONG]
    result = read(name, [WRITERS[name](calls)])
    assert (result.whole, result.rest) == (calls, "")


@of_several_calls
def test_white_space_between_calls_is_dropped(name: str) -> None:
    between = ",\n" if "pythonic" in name else " \n\n "
    texts = [WRITERS[name]([call]).strip() for call in (WEATHER, SUM)]
    result = read(name, [f" \n{between.join(texts)}\n "])
    assert (result.whole, result.rest) == ([WEATHER, SUM], "")


@some_formats
@pytest.mark.parametrize("call", nightly_but({"short", "world"}, ["short", "world", "long"]))
def test_a_split_anywhere_changes_nothing(name: str, call: str) -> None:
    given = {"short": WEATHER, "world": WORLD, "long": LONG}[call]
    text = WRITERS[name]([given] if name in ONE_CALL else [given, SUM])
    whole = read(name, [text])
    assert same(read(name, text), whole)
    for at in range(len(text)):
        assert same(read(name, [text[:at], text[at:]]), whole), at


@some_formats
@pytest.mark.parametrize("call", [WEATHER, SUM, WORLD, LONG], ids=["short", "nested", "world", "long"])
def test_a_call_cut_off_anywhere_is_its_text_or_itself_but_no_other_call(name: str, call: Call) -> None:
    text = WRITERS[name]([call])
    for end in range(len(text)):
        result = read(name, [text[:end]], closed=False)
        assert result.whole in ([], [call]), end
        assert text[:end].endswith(result.rest)
    assert read(name, [text[: len(text) // 2]], closed=False).whole == []


@of_several_calls
def test_a_call_cut_off_leaves_those_before_it(name: str) -> None:
    text = WRITERS[name]([WEATHER, SUM])
    end = text.index("y", text.index("add"))
    result = read(name, [text[:end]], closed=False)
    assert result.whole == [WEATHER]
    assert result.rest
    assert text[:end].endswith(result.rest)


@of_several_calls
def test_text_around_calls_is_not_lost(name: str) -> None:
    result = read(name, ["Let us see. ", WRITERS[name]([WEATHER, SUM]), " That was it."])
    if name in BARE:  # without a marker, text before a call proves that it is not a call
        assert result.whole == []
    else:
        assert result.whole == [WEATHER, SUM]
        assert "Let us see." in result.rest
        assert "That was it." in result.rest


MALFORMED = {
    "function_gemma": "call:get_weather{:}",
    "gemma4": 'call:get_weather{city<|"|>Paris<|"|>}',
    "glm47": "get_weather in Paris, please",
    "json_tools": '{"name": "get_weather", "arguments": {city: Paris}}',
    "k2_horizon": "<ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key>Paris</ifm|tool_call>",
    "kimi_k2": "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{Paris}<|tool_call_end|>",
    "kimi_k3": '<|open|>call tool="get_weather"<|sep|><|open|>json type="object"<|sep|>[1]<|close|>json<|sep|>'
    "<|close|>call<|sep|>",
    "laguna": "get_weather<arg_key>city",
    "longcat": "get_weather<longcat_arg_key>days</longcat_arg_key><longcat_arg_value>3",
    "minicpm5": '"get_weather"><param name="city"><![CDATA[</param>',
    "minimax_m2": '<invoke name="get_weather">Paris</invoke>',
    "mistral": 'get_weather[ARGS]{"city": NaN}',
    "muse_spark": '<atem:invoke name="get_weather">Paris</atem:invoke>',
    "pythonic": "[get_weather(days=Paris)]",
    "qwen3_coder": "<function=get_weather>\nThree days.\n</function>",
    "minimax_m3": ']<]minimax[>[<invoke name="get_weather">Paris]<]minimax[>[</invoke>',
    "llama4_pythonic": "[get_weather(1 +)]",
    "olmo3": "get_weather(1 +)",
    "harmony": 'functions.get_weather <|constrain|>json<|message|>{"city" "Paris"}',
    "llama3_json": '{"name": "get_weather", "parameters": {"city": "Paris",}}',
    "gemma3_code": "\nget_weather(1 +)\n",
}


def malformed(tool_format: ToolFormat) -> str:
    """Return a call without a valid form: text in place of parameters, or a key without quotes."""
    shape = tool_format.shape
    if isinstance(shape, TaggedCall):
        return f"{shape.head.replace('{}', 'get_weather')}Paris{shape.tail}"
    return shape.write(WrittenCall("get_weather", {"city": "Paris"}), 0).replace('"city"', "city")


MALFORMED |= {name: malformed(FORMATS[name]) for name in FORMATS.keys() - MALFORMED.keys()}
BARE = {name for name, found in FORMATS.items() if found.bare}
"""Formats whose sections may lack markers, so that other text ends them."""


@every_format
def test_a_malformed_call_is_its_text(name: str) -> None:
    result = read(name, [MALFORMED[name]])
    assert (result.whole, result.rest) == ([], MALFORMED[name])


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - ONE_CALL - BARE))
def test_a_malformed_call_does_not_affect_the_next(name: str) -> None:
    result = read(name, [MALFORMED[name], "\n", WRITERS[name]([WEATHER])])
    assert result.whole == [WEATHER]
    assert MALFORMED[name].strip() in result.rest


@some_formats
@given(data=st.data())
def test_any_text_is_parsed_without_raising_and_alike_in_any_parts(name: str, data: st.DataObject) -> None:
    sample = WRITERS[name]([WEATHER, WORLD]) + MALFORMED[name]
    cuts = st.tuples(st.integers(0, len(sample)), st.integers(0, 30)).map(lambda cut: sample[cut[0] : sum(cut)])
    pieces = data.draw(st.lists(st.one_of(cuts, st.just(WRITERS[name]([SUM])), st.text(max_size=5)), max_size=8))
    closed = data.draw(st.booleans())
    assert same(read(name, pieces, closed), read(name, ["".join(pieces)], closed))


Json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", ["json_tools", "kimi_k2", "mistral", "harmony", "llama3_json"])
@given(arguments=st.dictionaries(st.text(max_size=5), Json, max_size=4))
def test_any_json_object_is_read_as_it_is(name: str, arguments: dict[str, Any]) -> None:
    assert read(name, WRITERS[name]([("add", arguments)])).whole == [("add", arguments)]


@pytest.mark.parametrize("name", ["pythonic", "gemma3_code"])
@given(value=Json)
def test_any_python_literal_is_read_as_it_is(name: str, value: Any) -> None:
    assert read(name, WRITERS[name]([("add", {"tags": value})])).whole == [("add", {"tags": value})]
