"""Parts of an answer: their order, calls that are held back, and white space."""

from typing import Any

import msgspec

from lmwire import TokenDelta, ToolCallDelta
from lmwire_http.ollama.response import AnswerPart, PartBuilder, join_parts


def text(token: str, channel: str = "content", **fields: Any) -> TokenDelta:
    return TokenDelta(id="1", token=token, token_ids=[1], channel=channel, **fields)


def call(arguments: str, index: int = 0, **fields: Any) -> ToolCallDelta:
    return ToolCallDelta(id="1", index=index, arguments=arguments, **fields)


def shown(parts: list[AnswerPart]) -> list[tuple[str, str, list[Any]]]:
    return [
        (part.thinking, part.content, [msgspec.to_builtins(each.function) for each in part.tool_calls])
        for part in parts
    ]


def test_deltas_that_come_together_are_one_part_if_their_order_allows() -> None:
    deltas = [text("hm", "reasoning"), text(".", "reasoning"), text("It "), text("is")]
    assert shown(PartBuilder().add(deltas)) == [("hm.", "It is", [])]
    assert shown(PartBuilder().add([text("It"), text("hm", "reasoning")])) == [("", "It", []), ("hm", "", [])]


def test_a_call_comes_when_it_is_complete() -> None:
    parts = PartBuilder()
    assert parts.add([call('{"city":', name="weather", call_id="a")]) == []
    [part] = parts.add([call(' "Rome"}', complete=True), call("", index=1, name="now", call_id="b", complete=True)])
    assert part.tool_calls[0].id == "call_a"
    assert msgspec.json.decode(msgspec.json.encode(part.tool_calls)) == [
        {"id": "call_a", "function": {"index": 0, "name": "weather", "arguments": {"city": "Rome"}}},
        {"id": "call_b", "function": {"index": 1, "name": "now", "arguments": {}}},
    ]


def test_text_after_a_call_is_a_part_of_its_own() -> None:
    deltas = [text("One."), call("{}", name="now", complete=True), text("Two.")]
    first, second = PartBuilder().add(deltas)
    assert (first.content, len(first.tool_calls), second.content) == ("One.", 1, "Two.")


def test_an_invalid_call_is_its_text() -> None:
    deltas = [call("{city", name="weather"), call("", complete=False), text("weather({city", call=True)]
    assert shown(PartBuilder().add(deltas)) == [("", "weather({city", [])]


def test_white_space_waits_for_content() -> None:
    parts = PartBuilder()
    assert parts.add([text("\n\n")]) == []
    assert shown(parts.add([text(" It"), text(" is ")])) == [("", "\n\n It is ", [])]
    assert parts.end() == []


def test_an_answer_of_white_space_is_kept_unless_calls_follow() -> None:
    alone, before_a_call = PartBuilder(), PartBuilder()
    for parts in (alone, before_a_call):
        assert parts.add([text("\n")]) == []
    before_a_call.add([call("{}", name="now", complete=True)])
    assert shown(alone.end()) == [("", "\n", [])]
    assert before_a_call.end() == []


def test_joined_parts_are_the_whole_answer() -> None:
    parts = [AnswerPart(thinking="a"), AnswerPart(thinking="b", content="c"), AnswerPart(content="d")]
    assert join_parts(parts) == AnswerPart(thinking="ab", content="cd")
