"""Tools through Anthropic's API: what the model is shown, how it calls, and what becomes of the results."""

from typing import Any

import anthropic
import pytest

from support.http.anthropic_http import MODEL, WEATHER, client, user
from support.http.http_server import Server

TINY = "builtin:tiny"


@pytest.fixture(scope="module")
def scripted(scripted_server: Server) -> anthropic.Anthropic:
    return client(scripted_server)


def ask(client: anthropic.Anthropic, content: Any, **options: Any) -> Any:
    options = {"tools": [WEATHER], "max_tokens": 100, **options}
    return client.messages.create(model=MODEL, messages=[user(content)], **options)


def test_a_call_is_a_block_after_the_reasoning_and_the_text(scripted: anthropic.Anthropic) -> None:
    reasoning, text, call = ask(scripted, "weather in Rome").content
    assert (reasoning.thinking, text.text) == ("I look it up.", "One moment.")
    assert (call.type, call.id, call.name, call.input) == ("tool_use", "toolu_call_rome", "weather", {"city": "Rome"})


def test_several_calls_are_several_blocks(scripted: anthropic.Anthropic) -> None:
    message = ask(scripted, "weather everywhere")
    assert [call.input["city"] for call in message.content] == ["Rome", "Oslo"]


def test_white_space_before_a_call_is_no_block(scripted: anthropic.Anthropic) -> None:
    assert [block.type for block in ask(scripted, "blanks").content] == ["tool_use"]


def test_an_invalid_call_is_text(scripted: anthropic.Anthropic) -> None:
    message = ask(scripted, "weather broken")
    [text] = message.content
    assert text.text.startswith("Well:") and "{city" in text.text
    assert message.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("choice", "options", "expected"),
    [
        ({"type": "any"}, {}, "required"),
        ({"type": "any"}, {"thinking": {"type": "adaptive"}}, "required, may reason"),
        ({"type": "any", "disable_parallel_tool_use": True}, {}, "required, one"),
        ({"type": "auto", "disable_parallel_tool_use": True}, {}, "one"),
        ({"type": "tool", "name": "weather"}, {}, "by name"),
    ],
)
def test_the_choice_of_a_tool_reaches_the_worker(
    scripted: anthropic.Anthropic, choice: Any, options: Any, expected: str
) -> None:
    """A call that the request demands is not preceded by reasoning, unless the request says so."""
    [call] = ask(scripted, "options", tool_choice=choice, **options).content
    assert call.input == {"city": expected}


def test_without_a_choice_the_tools_are_not_shown(scripted: anthropic.Anthropic) -> None:
    message = ask(scripted, "weather in Rome", tool_choice={"type": "none"})
    assert {block.type for block in message.content} == {"text"}


@pytest.mark.slow
def test_the_model_uses_a_tool_and_states_its_result(tiny_server: Server) -> None:
    tool: Any = {**WEATHER, "name": "get_weather", "description": "Get the weather of a city."}
    messages: list[Any] = [user("What is the weather in Paris?")]
    options: Any = {"model": TINY, "max_tokens": 100, "tools": [tool], "extra_body": {"temperature": 0}}
    answer = client(tiny_server).messages.create(messages=messages, **options)
    assert answer.stop_reason == "tool_use"
    call = answer.content[-1]
    assert call.type == "tool_use" and call.input == {"city": "Paris"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "rain, 9 degrees"}
    messages += [{"role": "assistant", "content": answer.content}, user([result])]
    expected = client(tiny_server).messages.create(messages=messages, **options)
    assert expected.stop_reason == "end_turn"
    assert "rain" in "".join(block.text for block in expected.content if block.type == "text")


@pytest.mark.slow
def test_the_clients_own_loop_runs_tools(tiny_server: Server) -> None:
    asked = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """Get the weather of a city."""
        asked.append(city)
        return "rain, 9 degrees"

    runner = client(tiny_server).beta.messages.tool_runner(
        model=TINY,
        max_tokens=100,
        tools=[get_weather],
        messages=[user("What is the weather in Paris?")],
        extra_body={"temperature": 0},
    )
    last = runner.until_done()
    assert asked == ["Paris"]
    assert "rain" in "".join(block.text for block in last.content if block.type == "text")


def test_a_choice_that_is_no_tool_is_refused_by_name(scripted: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"tool_choice.name"):
        ask(scripted, "hello", tool_choice={"type": "tool", "name": "sing"})


@pytest.mark.slow
def test_a_call_that_the_request_demands_comes_without_reasoning(tiny_server: Server) -> None:
    """The template of this model lets it reason. The demand for a call does not, unless the request says so."""
    options: Any = {
        "model": TINY,
        "max_tokens": 60,
        "messages": [user("What is the weather in Paris?")],
        "tools": [{**WEATHER, "name": "get_weather"}],
        "extra_body": {"temperature": 0},
    }
    demanded = client(tiny_server).messages.create(**options, tool_choice={"type": "any"})
    assert [block.type for block in demanded.content] == ["tool_use"]
    prompt: Any = {name: options[name] for name in ("model", "messages", "tools")}
    choices: Any = ({"tool_choice": {"type": "any"}}, {"thinking": {"type": "disabled"}}, {})
    counts = [client(tiny_server).messages.count_tokens(**prompt, **choice).input_tokens for choice in choices]
    assert counts[0] == counts[1] > counts[2]


@pytest.mark.slow
def test_a_tool_is_called_when_a_search_has_found_it(tiny_server: Server) -> None:
    weather = {**WEATHER, "name": "get_weather", "description": "Get the weather of a city.", "defer_loading": True}
    search = {"name": "find_tools", "description": "Find tools.", "input_schema": {"type": "object"}}
    found = [{"type": "tool_reference", "tool_name": "get_weather"}]
    messages: list[Any] = [
        user("What is the weather in Paris?"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "find_tools", "input": {}}]},
        user([{"type": "tool_result", "tool_use_id": "a", "content": found}]),
    ]
    choice: Any = {"type": "tool", "name": "get_weather"}
    options: Any = {"model": TINY, "max_tokens": 60, "tools": [weather, search], "extra_body": {"temperature": 0}}
    [call] = client(tiny_server).messages.create(messages=messages, tool_choice=choice, **options).content
    assert call.type == "tool_use" and call.name == "get_weather"
    before = client(tiny_server).messages.create(messages=messages[:1], **options)
    assert {block.name for block in before.content if block.type == "tool_use"} <= {"find_tools"}
