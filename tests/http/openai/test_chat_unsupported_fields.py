"""Rejected chat completions: the error names the client's own field."""

import json
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import openai
import pytest
from openai import OpenAI

from support.http.http_server import Server
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

JSON: Final = {"content-type": "application/json"}

USER = {"role": "user", "content": "Who are you?"}
TOOL = {"type": "function", "function": {"name": "look"}}
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{"}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture(scope="module")
def client(tiny_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)


def refusal(client: OpenAI, fields: dict[str, Any]) -> openai.BadRequestError:
    body: Any = {"messages": [USER], "max_tokens": 1, **fields}
    with pytest.raises(openai.BadRequestError) as failure:
        client.chat.completions.create(model="builtin:tiny", messages=body.pop("messages"), extra_body=body)
    return failure.value


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"logit_bias": {"x": 1}}, "logit_bias.x"),
        ({"logit_bias": {"40": "much"}}, "logit_bias.40"),
        ({"logit_bias": {"40": True}}, "logit_bias.40"),
        ({"logit_bias": {"9999999": 1}}, "logit_bias.9999999"),
        ({"logit_bias": {"40": 101}}, "logit_bias.40"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"seed": 1.5}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop[1]"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": None, "max_completion_tokens": -1}, "max_completion_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": False, "top_logprobs": 1}, "top_logprobs"),
        ({"reasoning_effort": "lots"}, "reasoning_effort"),
        ({"reasoning_budget": -2}, "reasoning_budget"),
        ({"verbosity": "loud"}, "verbosity"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({"prediction": {"type": "content", "content": "I"}}, "prediction"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"functions": [{"name": ""}]}, "functions[0].name"),
        ({"functions": [{"name": "look"}], "tools": [TOOL]}, "functions"),
        ({"functions": [{"name": "look"}], "function_call": {"name": "other"}}, "function_call.name"),
        ({"function_call": "auto"}, "function_call"),
        ({"chat_template_kwargs": {"messages": 1}}, "chat_template_kwargs.messages"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        ({"tools": [{"name": ""}]}, "tools[0].name"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        (
            {"response_format": {"type": "json_object", "schema": {"properties": {"a": {"minimum": "x"}}}}},
            "response_format.schema.properties.a.minimum",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}},
            "tool_choice.function.name",
        ),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_object"}, "format": {"type": "json_object"}}, "format"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "object", "properties": {"a": {"minimum": "x"}}}},
                }
            },
            "response_format.json_schema.schema.properties.a.minimum",
        ),
    ],
    ids=str,
)
def test_a_field_that_is_wrong_is_named(client: OpenAI, fields: dict[str, Any], param: str) -> None:
    error = refusal(client, fields)
    assert error.param == param
    assert param in error.message
    assert error.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ({"role": "robot", "content": ""}, ".role"),
        ({"role": "function", "name": "look", "content": "x"}, ".role"),
        ({"role": "user"}, ".content"),
        ({"role": "user", "content": [{"type": "video"}]}, ".content[0].type"),
        ({"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}, ".content[0]"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "pictures/cat.png"}}]},
            ".content[0].image_url.url",
        ),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}, ".content[0]"),
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]},
            ".content[0]",
        ),
        ({"role": "assistant"}, ".content"),
        ({"role": "assistant", "content": "", "audio": {"id": "x"}}, ".audio"),
        ({"role": "assistant", "content": "", "reasoning": "a", "reasoning_content": "b"}, ".reasoning"),
        (
            {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "", "arguments": ""}}]},
            ".tool_calls[0].function.name",
        ),
        ({"role": "assistant", "function_call": {"name": "", "arguments": ""}}, ".function_call.name"),
        ({"role": "tool", "content": "sunny"}, ".tool_call_id"),
    ],
    ids=str,
)
def test_a_message_that_is_wrong_is_named_with_its_place(client: OpenAI, message: Any, path: str) -> None:
    error = refusal(client, {"messages": [USER, message, USER]})
    assert error.param == f"messages[1]{path}"
    assert f"messages[1]{path}" in error.message


def test_no_messages_are_none_to_answer(client: OpenAI) -> None:
    assert refusal(client, {"messages": []}).param == "messages"


def test_a_prompt_longer_than_the_context_has_openai_s_code(client: OpenAI) -> None:
    error = refusal(client, {"messages": [{"role": "user", "content": "lmwire " * 3000}]})
    assert error.code == "context_length_exceeded"


def test_an_image_that_the_model_cannot_see_becomes_a_note_on_request(client: OpenAI) -> None:
    parts: Any = [{"type": "text", "text": "Who are you?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    answer = client.chat.completions.create(
        model="builtin:tiny",
        messages=[{"role": "user", "content": parts}],
        max_tokens=1,
        extra_body={"strict_media": False},
    )
    plain = client.chat.completions.create(model="builtin:tiny", messages=[USER], max_tokens=1)  # type: ignore[list-item]
    assert answer.usage and plain.usage
    assert answer.usage.prompt_tokens > plain.usage.prompt_tokens


def test_what_earlier_turns_may_hold_is_taken(client: OpenAI) -> None:
    turns: Any = [
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": "Hello", "name": "ada"},
        {"role": "assistant", "content": None, "refusal": "No.", "annotations": [], "audio": None},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "reasoning_content": "Hm."},
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "function": {"name": "look", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "nothing"}], "name": "look"},
        {"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": "b", "index": 0}]},
        {"role": "tool", "tool_call_id": "b", "content": "the arguments are no JSON"},
        {"role": "user", "content": "Who are you?"},
    ]
    answer = client.chat.completions.create(model="builtin:tiny", messages=turns, max_tokens=1)
    assert answer.usage and answer.usage.prompt_tokens > 50


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [USER]}),
        ("/v1/responses", {"input": "Who are you?"}),
        ("/v1/messages", {"messages": [USER], "max_tokens": 1}),
        ("/v1/messages/count_tokens", {"messages": [USER]}),
    ],
)
def test_a_requests_own_template_is_refused_unless_the_server_allows_it(
    mock_server: Server, path: str, body: dict[str, Any]
) -> None:
    template = {"model": "any", "chat_template": "{{ messages[0].content }}"}
    with pytest.raises(HTTPError) as failure:
        urlopen(Request(f"{mock_server.url}{path}", json.dumps(body | template).encode(), JSON), timeout=SECONDS)
    assert failure.value.code == 400
    assert "--request-templates" in failure.value.read().decode()


@pytest.mark.parametrize("pattern", ["((a{1000}){1000}){1000}"])
def test_an_expression_that_multiplies_itself_is_the_clients_mistake(client: OpenAI, pattern: str) -> None:
    refused = refusal(client, {"format": {"type": "regex", "pattern": pattern}})
    assert (refused.status_code, refused.param) == (400, "format.pattern")


def test_a_schema_that_refers_to_itself_is_no_failure_of_the_server(client: OpenAI) -> None:
    node = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "tree", "schema": schema}}
    try:
        client.chat.completions.create(
            model="builtin:tiny",
            messages=[{"role": "user", "content": "Who are you?"}],
            response_format=wanted,
            max_tokens=200,  # a random tree may be as deep as the context is long
        )
    except openai.APIStatusError as failure:
        assert failure.status_code == 400
