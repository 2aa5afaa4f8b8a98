"""Cut-off tool calls are recognizable in every API: neither text nor complete calls."""

import json
from collections.abc import Iterator
from typing import Any, Final

import anthropic
import openai
import pytest

from lmwire_http.inference.answers import ArgumentsBuffer, complete_members
from support.http.http_server import Server
from support.nightly import nightly_but

MODEL: Final = "builtin:tiny"
MESSAGES: Final[Any] = [{"role": "user", "content": "What is the weather in Paris?"}]
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: Final = {"name": "get_weather", "description": "Get the weather of a city.", "parameters": SCHEMA}
MARKUP: Final = ("<tool_call", "get_weather", "tool_call>", '"name"', '"arguments"')
TOOLS: Final[Any] = [{"type": "function", "function": FUNCTION}]
RESPONSE_TOOLS: Final[Any] = [{"type": "function", **FUNCTION}]
MESSAGE_TOOLS: Final[Any] = [{"name": "get_weather", "description": FUNCTION["description"], "input_schema": SCHEMA}]


@pytest.fixture(scope="module")
def client(tiny_server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def claude(tiny_server: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=tiny_server.url, api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def lengths(client: openai.OpenAI) -> range:
    """Each length at which the call, which the model makes when it may, is not whole."""
    options: Any = {"model": MODEL, "messages": MESSAGES, "tools": TOOLS, "temperature": 0}
    whole = client.chat.completions.create(**options)
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.usage
    return range(1, whole.usage.completion_tokens - 1)


@pytest.fixture(scope="module")
def some_lengths(lengths: range) -> list[int]:
    """A few of these lengths, from every part of the call.

    The worker cuts the call in the same way for each API, and at night the chat completions try every length.
    """
    return [*lengths[::5], lengths[-1]]


def is_cut(arguments: str) -> bool:
    """Return whether the arguments are only the start of the call's arguments."""
    try:
        assert json.loads(arguments) == {"city": "Paris"}
    except json.JSONDecodeError:
        return True
    return False


def chat_options(length: int) -> Any:
    options = {"model": MODEL, "messages": MESSAGES, "tools": TOOLS, "temperature": 0}
    return {**options, "max_tokens": length}


@pytest.mark.slow
@pytest.mark.parametrize("step", nightly_but({4}, [4, 1]))
def test_a_cut_call_is_a_part_of_one_in_a_chat_completion_and_in_its_stream(
    client: openai.OpenAI, lengths: range, step: int
) -> None:
    cut = 0
    for length in lengths[::step]:
        whole = client.chat.completions.create(**chat_options(length)).choices[0]
        with client.chat.completions.stream(**chat_options(length)) as stream:
            # The client's own end raises for an answer that is cut off.
            chunks = [event.chunk.choices[0] for event in stream if event.type == "chunk" and event.chunk.choices]
        calls = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
        arguments = "".join(call.function.arguments or "" for call in calls if call.function)
        assert chunks[-1].finish_reason == whole.finish_reason == "length"
        assert "".join(chunk.delta.content or "" for chunk in chunks) == (whole.message.content or "")
        assert not [marker for marker in MARKUP if marker in (whole.message.content or "")]
        assert arguments == "".join(call.function.arguments for call in whole.message.tool_calls or ())
        assert bool(calls) == bool(whole.message.tool_calls)
        if calls:
            cut += is_cut(arguments)
    assert cut


@pytest.mark.slow
def test_a_cut_call_is_an_incomplete_item_of_a_response(client: openai.OpenAI, some_lengths: list[int]) -> None:
    kinds = set()
    for length in some_lengths:
        options: Any = {"model": MODEL, "input": MESSAGES, "tools": RESPONSE_TOOLS, "temperature": 0}
        options |= {"max_output_tokens": length}
        whole = client.responses.create(**options)
        events: list[Any] = [*client.responses.create(stream=True, **options)]
        streamed = events[-1].response
        assert whole.status == streamed.status == "incomplete"
        assert [shape(item) for item in whole.output] == [shape(item) for item in streamed.output]
        for item in whole.output:
            kinds.add((item.type, item.status))
            if item.type == "function_call":
                assert is_cut(item.arguments) == (item.status == "incomplete")
        assert not [marker for marker in MARKUP if marker in whole.output_text]
    assert ("function_call", "incomplete") in kinds


def shape(item: Any) -> Any:
    if item.type == "function_call":
        return item.type, item.name, item.arguments, item.status
    return item.type, item.content[0].text, item.status


@pytest.mark.slow
def test_a_cut_call_is_a_block_of_a_message_with_what_is_whole_of_its_input(
    claude: anthropic.Anthropic, some_lengths: list[int]
) -> None:
    blocks = set()
    for length in some_lengths:
        options: Any = {"model": MODEL, "messages": MESSAGES, "tools": MESSAGE_TOOLS}
        options |= {"max_tokens": length, "extra_body": {"temperature": 0}}
        whole = claude.messages.create(**options)
        with claude.messages.stream(**options) as stream:
            streamed = stream.get_final_message()
        assert whole.stop_reason == streamed.stop_reason == "max_tokens"
        assert [part(block) for block in streamed.content] == [part(block) for block in whole.content]
        blocks |= {part(block) for block in whole.content}
        assert not [
            marker for marker in MARKUP for block in whole.content if block.type == "text" and marker in block.text
        ]
    assert ("tool_use", "get_weather", "{}") in blocks


def part(block: Any) -> Any:
    if block.type == "tool_use":
        return block.type, block.name, json.dumps(block.input)
    return block.type, block.text


@pytest.mark.slow
def test_a_turn_with_a_cut_call_can_be_sent_back(client: openai.OpenAI, lengths: range) -> None:
    """A client can continue if it sends the turn back with a result that explains the fault."""
    turn = client.chat.completions.create(**chat_options(lengths[-1])).choices[0].message
    [call] = turn.tool_calls or []
    result = {"role": "tool", "tool_call_id": call.id, "content": "the arguments were cut off"}
    turns = [*MESSAGES, turn.to_dict(), result]
    options: dict[str, Any] = {**chat_options(8), "messages": turns}
    assert client.chat.completions.create(**options).choices


# What is shown of arguments.


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("", {}),
        ("{", {}),
        ('{"a"', {}),
        ('{"a": ', {}),
        ('{"a": 1', {}),
        ('{"a": 1,', {"a": 1}),
        ('{"a": "x, {y}", "b": "', {"a": "x, {y}"}),
        (r'{"a": "\"", "b": [1, 2', {"a": '"', "b": [1]}),
        (r'{"a": "\\", "b": {"c": {', {"a": "\\", "b": {"c": {}}}),
        ('{"a": [{"b": true}, nul', {"a": [{"b": True}]}),
        ('{"a": 1}', {"a": 1}),
    ],
)
def test_the_complete_members_of_cut_arguments_form_an_object(written: str, whole: object) -> None:
    assert json.loads(complete_members(written)) == whole


@pytest.mark.parametrize("fragments", [["{", "}"], ["{}"], ["", "{", '"a":{"b":1}', "}"], ['{"a": 1}', " "]])
def test_cut_arguments_never_pass_for_whole_ones(fragments: list[str]) -> None:
    arguments = ArgumentsBuffer()
    joined = "".join(
        [arguments.next_delta(fragment, None) for fragment in fragments] + [arguments.next_delta("", False)]
    )
    with pytest.raises(json.JSONDecodeError):
        json.loads(joined)


def test_complete_arguments_are_passed_on_unchanged() -> None:
    arguments = ArgumentsBuffer()
    assert "".join(arguments.next_delta(*fragment) for fragment in (("{", None), ("}", None), ("", True))) == "{}"
