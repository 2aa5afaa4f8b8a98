"""A conversation about an image goes on with a model that does not see: the image becomes a note in the prompt."""

from typing import Any

import pytest

from support.http.http_server import Server
from support.http.raw_http import Answer, asked
from support.media.reading_media import encoded, in_base64, picture

pytestmark = pytest.mark.slow

PNG = in_base64(encoded(picture(size=(8, 8))))
URL = f"data:image/png;base64,{PNG}"


def chat(server: Server, turns: list[tuple[str, bool]], **fields: Any) -> Answer:
    image = {"type": "image_url", "image_url": {"url": URL}}
    messages = [
        {"role": role, "content": [{"type": "text", "text": "Who are you?"}, *([image] if seen else [])]}
        for role, seen in turns
    ]
    return _asked(server, "/v1/chat/completions", messages=messages, max_tokens=2, **fields)


def message(server: Server, turns: list[tuple[str, bool]], **fields: Any) -> Answer:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    messages = [
        {"role": role, "content": [{"type": "text", "text": "Who are you?"}, *([image] if seen else [])]}
        for role, seen in turns
    ]
    return _asked(server, "/v1/messages", messages=messages, max_tokens=2, **fields)


def respond(server: Server, turns: list[tuple[str, bool]], **fields: Any) -> Answer:
    image = {"type": "input_image", "image_url": URL}
    items = [
        {"role": role, "content": [{"type": _text_type(role), "text": "Who are you?"}, *([image] if seen else [])]}
        for role, seen in turns
    ]
    return _asked(server, "/v1/responses", input=items, max_output_tokens=16, **fields)


def _text_type(role: str) -> str:
    return "output_text" if role == "assistant" else "input_text"


def _asked(server: Server, path: str, **body: Any) -> Answer:
    return asked(server.url, "POST", path, {"model": "builtin:tiny", "temperature": 0, **body})


def prompt_tokens(answer: Answer) -> int:
    assert answer.status == 200, answer.body
    usage = answer.json["usage"]
    return usage.get("prompt_tokens") or usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)


APIS = pytest.mark.parametrize("ask", [chat, message, respond])
EARLIER = [("user", True), ("assistant", False), ("user", False)]
NONE = [("user", False), ("assistant", False), ("user", False)]


@APIS
def test_an_image_of_an_earlier_turn_is_a_note(tiny_server: Server, ask: Any) -> None:
    assert prompt_tokens(ask(tiny_server, EARLIER)) > prompt_tokens(ask(tiny_server, NONE))


@APIS
def test_an_image_of_an_earlier_turn_is_refused_with_strict_media(tiny_server: Server, ask: Any) -> None:
    refused = ask(tiny_server, EARLIER, strict_media=True)
    assert refused.status == 400
    assert "takes no images" in refused.json["error"]["message"]


@APIS
def test_a_new_image_is_refused_by_its_own_field(tiny_server: Server, ask: Any) -> None:
    refused = ask(tiny_server, [*EARLIER[:2], ("user", True)])
    assert refused.status == 400
    error = refused.json["error"]["message"]
    assert "[2].content[1]: this model takes no images" in error
    assert "strict_media" in error


@APIS
def test_a_new_image_is_a_note_without_strict_media(tiny_server: Server, ask: Any) -> None:
    last = [*EARLIER[:2], ("user", True)]
    assert prompt_tokens(ask(tiny_server, last, strict_media=False)) > prompt_tokens(
        ask(tiny_server, EARLIER, strict_media=False)
    )


TOOL_RESULTS: dict[str, dict[str, Any]] = {
    "/v1/responses": {
        "input": [
            {"role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_image", "image_url": URL}],
            },
        ]
    },
    "/v1/messages": {
        "max_tokens": 2,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
                        ],
                    }
                ],
            },
        ],
    },
}


@pytest.mark.parametrize("path", TOOL_RESULTS)
def test_an_image_that_a_tool_returns_is_a_note_so_that_an_agent_goes_on(tiny_server: Server, path: str) -> None:
    answer = _asked(tiny_server, path, **TOOL_RESULTS[path])
    assert answer.status == 200, answer.body
    refused = _asked(tiny_server, path, **TOOL_RESULTS[path], strict_media=True)
    assert (refused.status, b"takes no images" in refused.body) == (400, True)
