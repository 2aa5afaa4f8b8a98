"""Rejected requests to /v1/responses: the error names the client's own field and the fix."""

from typing import Any

import openai
import pytest
from openai import OpenAI

from support.http.http_server import Server

FUNCTION: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}


@pytest.fixture(scope="module")
def client(scripted_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{scripted_server.url}/v1", api_key="any", max_retries=0)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "telepathy", "content": "x"}]}, "input[0].type"),
        ({"input": [{"type": "web_search_call"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
            "input[0].content[0]",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input[0].content[0].file_id",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "cat.png"}]}]},
            "input[0].content[0].image_url",
        ),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "["}, {"role": "user"}]},
            "input[1].content",
        ),
        ({"tools": [FUNCTION], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "sing"}}, "tool_choice.name"),
        (
            {
                "tools": [FUNCTION],
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "sing"}],
                },
            },
            "tool_choice.tools[0].name",
        ),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"temperature": 3}, "temperature"),
        ({"top_p": 7}, "top_p"),
        ({"logit_bias": {"x": 1}}, "logit_bias.x"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"text": {"verbosity": "loud"}}, "text.verbosity"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"include": ["everything"]}, "include[0]"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"n": 2}, "n"),
    ],
)
def test_a_wrong_field_is_named_as_the_client_wrote_it(client: OpenAI, fields: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.post("/responses", body={"model": "mock", "input": "hello", **fields}, cast_to=object)
    assert refused.value.param == param
    assert param in refused.value.message


def test_an_image_that_the_model_does_not_see_is_named(client: OpenAI) -> None:
    image: Any = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    asked: Any = [{"role": "user", "content": "Hi"}, {"role": "user", "content": [image]}]
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="mock", input=asked, instructions="Be brief.")
    assert refused.value.param == "input[1].content[0]"
    answered = client.responses.create(model="mock", input=asked, extra_body={"strict_media": False})
    continued: Any = {"model": "mock", "input": "Well?", "previous_response_id": answered.id}
    assert client.responses.create(**continued).output_text == "Well?"
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**continued, extra_body={"strict_media": True})
    assert refused.value.param == "previous_response_id"


@pytest.mark.slow
def test_a_schema_that_cannot_be_enforced_is_named(tiny_server: Server) -> None:
    client = OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": "one"}}}
    wanted: Any = {"format": {"type": "json_schema", "name": "age", "schema": schema}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="builtin:tiny", input="hello", text=wanted)
    assert (refused.value.param or "").startswith("text.format.schema")


@pytest.mark.parametrize(
    ("text", "error"), [("busy", openai.RateLimitError), ("breaks at once", openai.InternalServerError)]
)
def test_failures_of_the_worker_are_the_clients_own_errors(client: OpenAI, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        client.responses.create(model="mock", input=text)


@pytest.mark.parametrize(("query", "param"), [("order=up", "order"), ("limit=0", "limit"), ("after=x", "after")])
def test_a_list_that_cannot_be_is_refused(client: OpenAI, query: str, param: str) -> None:
    response = client.responses.create(model="mock", input="hello")
    with pytest.raises(openai.BadRequestError) as refused:
        client.get(f"/responses/{response.id}/input_items?{query}", cast_to=object)
    assert refused.value.param == param
