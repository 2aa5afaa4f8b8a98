"""Tools in /api/chat through Ollama's own client: calls, results, and calls that are not whole."""

import ollama
import pytest

from lmwire_http.ollama.request import CallFunction, Message, ToolCall, wire_messages
from support.http.http_server import Server
from support.http.ollama_http import MODEL, WEATHER, client, user


@pytest.fixture(scope="module")
def scripted(scripted_server: Server) -> ollama.Client:
    return client(scripted_server)


def called(message: ollama.Message) -> list[tuple[str, object]]:
    return [(call.function.name, dict(call.function.arguments)) for call in message.tool_calls or ()]


def test_arguments_are_objects(scripted: ollama.Client) -> None:
    answer = scripted.chat(MODEL, [user("weather everywhere")], tools=[WEATHER])
    assert called(answer.message) == [("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})]
    assert (answer.done_reason, answer.message.content) == ("stop", "")


def test_a_stream_has_whole_calls_after_the_text(scripted: ollama.Client) -> None:
    parts = list(scripted.chat(MODEL, [user("weather in Rome")], tools=[WEATHER], stream=True))
    assert "".join(part.message.thinking or "" for part in parts) == "I look it up."
    assert "".join(part.message.content or "" for part in parts) == "One moment."
    assert [call for part in parts for call in called(part.message)] == [("weather", {"city": "Rome"})]


def test_a_python_function_is_a_tool(scripted: ollama.Client) -> None:
    def weather(city: str) -> str:
        """Return the weather now.

        Args:
            city: The city.
        """
        return city

    answer = scripted.chat(MODEL, [user("weather in Rome")], tools=[weather])
    assert called(answer.message) == [("weather", {"city": "Rome"})]


def test_white_space_before_calls_is_dropped(scripted: ollama.Client) -> None:
    parts = scripted.chat(MODEL, [user("blanks")], tools=[WEATHER], stream=True)
    assert "".join(part.message.content or "" for part in parts) == ""


def test_the_text_of_an_invalid_call_is_content(scripted: ollama.Client) -> None:
    message = scripted.chat(MODEL, [user("weather broken")], tools=[WEATHER]).message
    assert message.content and message.content.startswith("Well:") and "{city" in message.content
    assert message.tool_calls is None


def test_results_belong_to_the_calls_of_their_tools() -> None:
    calls = [ToolCall(function=CallFunction(name=name)) for name in ("weather", "time", "time")]
    results = [Message(role="tool", tool_name=name) for name in ("time", "weather", "time")]
    wire = wire_messages([Message(role="assistant", tool_calls=calls), *results])
    assert [call["id"] for call in wire[0].get("tool_calls", ())] == ["1", "2", "3"]
    assert [(message.get("tool_call_id"), message.get("name")) for message in wire[1:]] == [
        ("2", "time"),
        ("1", "weather"),
        ("3", "time"),
    ]


def test_a_result_of_an_unknown_tool_belongs_to_the_first_call_without_one() -> None:
    calls = [ToolCall(function=CallFunction(name="weather"), id="call_a"), ToolCall(function=CallFunction(name="time"))]
    results = [
        Message(role="tool", tool_call_id="call_a"),
        Message(role="tool", tool_name="weather"),
    ]
    wire = wire_messages([Message(role="assistant", tool_calls=calls), *results])
    assert [message.get("tool_call_id") for message in wire[1:]] == ["a", "1"]


def test_a_conversation_goes_on_with_the_clients_own_messages(scripted: ollama.Client) -> None:
    messages = [user("weather everywhere")]
    message = scripted.chat(MODEL, messages, tools=[WEATHER]).message
    for call in message.tool_calls or ():
        city = call.function.arguments["city"]
        messages += [message] if len(messages) == 1 else []
        messages.append({"role": "tool", "content": f"sunny in {city}", "tool_name": call.function.name})
    assert scripted.chat(MODEL, messages, tools=[WEATHER]).message.content == "sunny in Oslo"


def test_a_result_without_a_call_is_refused(scripted: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match=r"^messages\[0\]\.tool_call_id: no earlier call") as error:
        scripted.chat(MODEL, [{"role": "tool", "content": "sunny", "tool_name": "weather"}])
    assert error.value.status_code == 400
