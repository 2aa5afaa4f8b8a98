"""Arguments are given while the model writes them."""

import json

import pytest

from lmwire_worker.tool_parsers import FORMATS, ToolCallFragment
from support.models.tool_samples import WRITERS, tool

STORY = "Once upon a time there was a <wolf>.\n\n" * 10 + "The end."
STREAMED = ["json_tools", "kimi_k2", "mistral", "harmony", "llama3_json"]
STREAMED_STRINGS = ["qwen3_coder", "glm47", "laguna", "longcat", "minimax_m2"]
BY_PARAMETER = ["kimi_k3", "minicpm5", "muse_spark"]
BY_ARGUMENT = ["function_gemma", "gemma4", "pythonic", "gemma3_code"]


def given(name: str, text: str) -> list[ToolCallFragment]:
    """Return the fragments that a parser returns for an incomplete section."""
    reader = FORMATS[name].make_parser([tool("write")])
    return [fragment for character in text for fragment in reader.push(character)]


def arguments(fragments: list[ToolCallFragment]) -> str:
    return "".join(fragment.arguments for fragment in fragments)


@pytest.mark.parametrize("name", STREAMED)
def test_json_is_given_character_by_character(name: str) -> None:
    text = WRITERS[name]([("write", {"note": STORY})])
    opening = text[: text.index("The end.")]
    fragments = given(name, opening)
    assert fragments[0].name == "write"
    assert arguments(fragments) == opening[opening.index('{"note') :]
    assert max(len(fragment.arguments) for fragment in fragments) == 1


@pytest.mark.parametrize("name", STREAMED_STRINGS)
def test_a_long_string_between_tags_is_given_as_it_comes(name: str) -> None:
    text = WRITERS[name]([("write", {"note": STORY})])
    fragments = given(name, text[: text.index("The end.")])
    assert fragments[0].name == "write"
    note = json.loads(arguments(fragments) + '"}')["note"]
    assert STORY.startswith(note)
    assert len(STORY) - len(note) < 60
    assert max(len(fragment.arguments) for fragment in fragments) < 80


@pytest.mark.parametrize("name", STREAMED_STRINGS)
def test_nothing_of_a_closing_tag_is_given(name: str) -> None:
    text = WRITERS[name]([("write", {"note": STORY, "city": "Paris"})])
    fragments = given(name, text[: text.index("city")])
    assert json.loads(arguments(fragments) + "}") == {"note": STORY}


@pytest.mark.parametrize("name", [*BY_PARAMETER, *STREAMED_STRINGS])
def test_a_parameter_is_given_when_its_tag_closes(name: str) -> None:
    text = WRITERS[name]([("write", {"days": 3, "city": "Paris"})])
    fragments = given(name, text[: text.index("Paris")])
    assert (fragments[0].name, arguments(fragments)) == ("write", '{"days":3')


@pytest.mark.parametrize("name", BY_ARGUMENT)
def test_an_argument_without_tags_is_given_when_the_next_begins(name: str) -> None:
    text = WRITERS[name]([("write", {"days": 3, "tags": [1, 2], "city": "Paris"})])
    for end, so_far in (("tags", '{"days":3'), ("city", '{"days":3,"tags":[1,2]')):
        fragments = given(name, text[: text.index(end)])
        assert (fragments[0].name, arguments(fragments)) == ("write", so_far)


@pytest.mark.parametrize("name", BY_ARGUMENT)
def test_calls_without_tags_end_before_the_section_does(name: str) -> None:
    fragments = given(name, WRITERS[name]([("write", {"days": 3})]))
    assert (fragments[0].name, json.loads(arguments(fragments)), fragments[-1].complete) == ("write", {"days": 3}, True)


@pytest.mark.parametrize("name", BY_ARGUMENT)
def test_a_call_whose_later_arguments_are_none_is_taken_back(name: str) -> None:
    text = WRITERS[name]([("write", {"days": 3, "city": "Paris"})])
    text = text.replace("city", "", 1)
    reader = FORMATS[name].make_parser([tool("write")])
    fragments = reader.push(text)
    last, rest = reader.end()
    assert arguments(fragments) == '{"days":3'
    assert [fragment.complete for fragment in fragments + last if fragment.complete is not None] == [False]
    assert rest == text


@pytest.mark.parametrize("text", ["add(days=1, days=2)", "add('a', city='b')"])
def test_a_python_call_that_names_an_argument_twice_is_taken_back(text: str) -> None:
    reader = FORMATS["pythonic"].make_parser([tool("add")])
    fragments = reader.push(text)
    last, rest = reader.end()
    assert [fragment.complete for fragment in fragments + last if fragment.complete is not None] == [False]
    assert rest == text


def test_a_long_value_that_is_no_string_waits_for_its_end() -> None:
    days = "1" * 50
    fragments = given("qwen3_coder", f"<function=write>\n<parameter=days>\n{days}")
    assert arguments(fragments) == ""


@pytest.mark.parametrize("name", STREAMED)
def test_a_call_whose_arguments_turn_out_to_be_no_json_is_taken_back(name: str) -> None:
    text = WRITERS[name]([("write", {"note": STORY})]).replace("The end.", "The \x00 end.")
    reader = FORMATS[name].make_parser([tool("write")])
    fragments = reader.push(text)
    last, rest = reader.end()
    assert [fragment.complete for fragment in fragments + last if fragment.complete is not None] == [False]
    assert rest == text
