"""Tokenize and detokenize, in the shapes of vLLM and of llama-server, with a real worker."""

from typing import Any

import pytest

from support.http.http_server import Server
from support.http.raw_http import asked, chat_body

pytestmark = pytest.mark.slow

TEXT = "Once upon a time, Grüße"


@pytest.fixture
def url(tiny_server: Server) -> str:
    return tiny_server.url


def send(url: str, path: str, **fields: Any) -> Any:
    answer = asked(url, "POST", path, fields)
    assert answer.status == 200, answer
    return answer.json


def refusal(url: str, path: str, **fields: Any) -> tuple[int, str, str]:
    answer = asked(url, "POST", path, fields)
    error = answer.json["error"]
    return answer.status, error["param"], error["message"]


def test_a_prompt_gets_the_response_of_vllm(url: str) -> None:
    made = send(url, "/tokenize", model="builtin:tiny", prompt=TEXT)
    assert set(made) == {"count", "max_model_len", "tokens", "token_strs"}
    assert (made["count"], made["max_model_len"]) == (len(made["tokens"]), 2048)
    assert made["count"] > 5


def test_content_gets_the_response_of_llama_server(url: str) -> None:
    made = send(url, "/tokenize", content=TEXT)
    assert made == {"tokens": send(url, "/tokenize", prompt=TEXT, add_special_tokens=False)["tokens"]}
    assert send(url, "/tokenize", content="") == {"tokens": []}


def test_a_conversation_has_the_tokens_of_its_chat(url: str) -> None:
    made = send(url, "/tokenize", **chat_body("hello", model="builtin:tiny"))
    chat = send(url, "/v1/chat/completions", **chat_body("hello", model="builtin:tiny", max_tokens=1))
    assert made["count"] == chat["usage"]["prompt_tokens"]
    text = send(url, "/detokenize", tokens=made["tokens"])["prompt"]
    assert "hello" in text
    unopened = send(url, "/tokenize", **chat_body("hello", model="builtin:tiny", add_generation_prompt=False))
    assert text.startswith(send(url, "/detokenize", tokens=unopened["tokens"])["prompt"])
    assert unopened["count"] < made["count"]


@pytest.mark.parametrize(
    "fields",
    [
        {"enable_thinking": False},
        {"reasoning_effort": "none"},
        {"response_prefix": "Once"},
        {"continue_final_message": True},
    ],
)
def test_options_of_a_chat_that_change_its_prompt_change_the_tokens(url: str, fields: dict[str, Any]) -> None:
    body = chat_body("hello", model="builtin:tiny", **fields)
    made = send(url, "/tokenize", **body)["count"]
    chat = send(url, "/v1/chat/completions", **body, max_tokens=1)
    assert made == chat["usage"]["prompt_tokens"]
    assert made != send(url, "/tokenize", **chat_body("hello", model="builtin:tiny"))["count"]


def test_a_prompt_is_counted_and_written_out_as_llama_server_does(url: str) -> None:
    body = chat_body("hello", model="builtin:tiny", prefix="Once", max_tokens=1, stream=True)
    tokens = send(url, "/tokenize", **chat_body("hello", model="builtin:tiny", prefix="Once"))["tokens"]
    counted = send(url, "/v1/chat/completions/input_tokens", **body)
    assert counted == {"object": "response.input_tokens", "input_tokens": len(tokens)}
    written = send(url, "/apply-template", **chat_body("hello", model="builtin:tiny", response_prefix="Once"))
    assert written == {"prompt": send(url, "/detokenize", tokens=tokens)["prompt"]}
    assert refusal(url, "/apply-template", messages=[])[:2] == (400, "messages")


def test_tools_are_part_of_the_prompt(url: str) -> None:
    tool = {"type": "function", "function": {"name": "look_it_up", "parameters": {"type": "object"}}}
    made = send(url, "/tokenize", **chat_body("hello", model="builtin:tiny", tools=[tool]))
    assert "look_it_up" in send(url, "/detokenize", tokens=made["tokens"])["content"]


def test_tokens_become_their_text_under_the_names_of_both_servers(url: str) -> None:
    tokens = send(url, "/tokenize", content=TEXT)["tokens"]
    assert send(url, "/detokenize", model="builtin:tiny", tokens=tokens) == {"prompt": TEXT, "content": TEXT}
    assert send(url, "/detokenize", tokens=[]) == {"prompt": "", "content": ""}


@pytest.mark.parametrize("path", ["/tokenize", "/v1/tokenize", "/tokenize/", "/v1/v1/tokenize"])
def test_the_path_has_the_forms_of_the_others(url: str, path: str) -> None:
    assert send(url, path, content=TEXT)["tokens"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "prompt"),
        ({"prompt": "a", "content": "a"}, "prompt"),
        ({"content": "a", "with_pieces": True}, "with_pieces"),
        ({"prompt": "a", "return_token_strs": True}, "return_token_strs"),
        ({"content": "a", "parse_special": False}, "parse_special"),
        ({**chat_body("hi", model="builtin:tiny"), "add_special_tokens": True}, "add_special_tokens"),
        ({"prompt": "a", "chat_template": "x"}, "chat_template"),
        ({"content": ["a", 1]}, "content"),
    ],
)
def test_a_field_that_cannot_be_honoured_is_named(url: str, fields: dict[str, Any], param: str) -> None:
    status, named, message = refusal(url, "/tokenize", **fields)
    assert (status, named) == (400, param)
    assert message.startswith(param)


@pytest.mark.parametrize(("tokens", "param"), [([5, 999_999], "tokens[1]"), ([-1], "tokens[0]"), (["a"], "tokens[0]")])
def test_a_token_that_does_not_exist_is_named(url: str, tokens: list[Any], param: str) -> None:
    status, named, message = refusal(url, "/detokenize", tokens=tokens)
    assert (status, named) == (400, param)
    assert message.startswith(param)


def test_pieces_that_are_not_wanted_are_accepted(url: str) -> None:
    given = {"with_pieces": False, "parse_special": True, "add_special": True}
    assert send(url, "/tokenize", content=TEXT, **given)["tokens"]
