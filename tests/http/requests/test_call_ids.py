"""Ids of tool calls have the prefix of each API. The worker receives its own ids back."""

from typing import Any, Final

import pytest

from lmwire_http.inference.call_ids import client_call_id, restore_call_ids
from support.http.http_server import Server
from support.http.raw_http import CHAT, asked

MODEL: Final = "builtin:tiny"
WORDS: Final = "What is the weather in Paris?"
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: Final = {"name": "get_weather", "description": "Get the weather of a city.", "parameters": SCHEMA}
USER: Final = {"role": "user", "content": WORDS}
OPENAI_TOOLS: Final = [{"type": "function", "function": FUNCTION}]
ANTHROPIC_TOOLS: Final = [{"name": "get_weather", "description": FUNCTION["description"], "input_schema": SCHEMA}]


@pytest.mark.slow
def test_call_ids_begin_with_call_over_openais_api(tiny_server: Server) -> None:
    body: Any = {"model": MODEL, "messages": [USER], "tools": OPENAI_TOOLS, "temperature": 0}
    [call] = asked(tiny_server.url, "POST", CHAT, body).json["choices"][0]["message"]["tool_calls"]
    assert call["id"].startswith("call_")
    assert b'"id":"call_' in asked(tiny_server.url, "POST", CHAT, body | {"stream": True}).body


@pytest.mark.slow
def test_call_ids_begin_with_toolu_over_anthropics_api(tiny_server: Server) -> None:
    body: Any = {"model": MODEL, "messages": [USER], "tools": ANTHROPIC_TOOLS, "temperature": 0, "max_tokens": 99}
    answer = asked(tiny_server.url, "POST", "/v1/messages", body).json
    [call] = [block for block in answer["content"] if block["type"] == "tool_use"]
    assert call["id"].startswith("toolu_")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "sunny, 21 degrees"}
    body["messages"] += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [result]}]
    [text] = asked(tiny_server.url, "POST", "/v1/messages", body).json["content"]
    assert "sunny" in text["text"]


@pytest.mark.parametrize("own", ["functions.get_weather:0", "aB3dE6gH9"])
def test_a_models_own_id_comes_back_to_it(own: str) -> None:
    id = client_call_id(own, "call_")
    messages: Any = [
        {"role": "assistant", "tool_calls": [{"id": id, "name": "f", "arguments": "{}"}]},
        {"role": "tool", "tool_call_id": id, "content": "x"},
    ]
    restore_call_ids(messages, "call_")
    assert (messages[0]["tool_calls"][0]["id"], messages[1]["tool_call_id"]) == (own, own)


def test_two_calls_whose_ids_differ_by_the_prefix_alone_stay_two() -> None:
    calls = [{"id": id, "name": "f", "arguments": "{}"} for id in ("a", "call_a", "call_b", "call_")]
    messages: Any = [
        {"role": "assistant", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": id, "content": "x"} for id in ("call_a", "a", "call_b", "call_")),
    ]
    restore_call_ids(messages, "call_")
    assert [call["id"] for call in messages[0]["tool_calls"]] == ["a", "call_a", "b", "call_"]
    assert [message["tool_call_id"] for message in messages[1:]] == ["call_a", "a", "b", "call_"]
