"""/v1/messages/count_tokens counts what /v1/messages reads."""

from typing import Any

import anthropic
import pytest

from support.http.anthropic_http import WEATHER, client, user
from support.http.http_server import Server

TINY = "builtin:tiny"
CONVERSATIONS: dict[str, Any] = {
    "a text": {"messages": [user("Who are you?")]},
    "a system prompt": {"system": [{"type": "text", "text": "Be brief."}], "messages": [user("Who are you?")]},
    "tools": {"tools": [WEATHER], "messages": [user("Who are you?")]},
    "tools not shown": {"tools": [WEATHER], "tool_choice": {"type": "none"}, "messages": [user("Who are you?")]},
    "the answer's beginning": {"messages": [user("Hi"), {"role": "assistant", "content": "Hello, I"}]},
    "a result": {
        "tools": [WEATHER],
        "messages": [
            user("The weather in Rome?"),
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}],
            },
            user([{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}]),
        ],
    },
}
THINKING: dict[str, Any] = {
    "unset": {},
    "adaptive": {"thinking": {"type": "adaptive"}},
    "enabled": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "disabled": {"thinking": {"type": "disabled"}},
}


@pytest.mark.parametrize("thinking", THINKING)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_count_is_the_input_of_the_answer(tiny_server: Server, name: str, thinking: str) -> None:
    messages = client(tiny_server).messages
    prompt = {"model": TINY, **CONVERSATIONS[name], **THINKING[thinking]}
    counted = messages.count_tokens(**prompt).input_tokens
    usage = messages.create(max_tokens=1, **prompt).usage
    assert counted == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_the_markers_of_reasoning_are_counted(tiny_server: Server) -> None:
    messages = client(tiny_server).messages
    counted = {
        name: messages.count_tokens(model=TINY, **CONVERSATIONS["a text"], **thinking).input_tokens
        for name, thinking in THINKING.items()
    }
    assert counted["disabled"] > counted["enabled"] > counted["adaptive"] == counted["unset"]


def test_thinking_that_the_model_cannot_do_is_refused_as_it_is_for_an_answer(tiny_server: Server) -> None:
    messages = client(tiny_server).messages
    template = {"chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}"}
    prompt: Any = {"model": TINY, **CONVERSATIONS["a text"], **THINKING["enabled"], "extra_body": template}
    with pytest.raises(anthropic.BadRequestError) as of_the_answer:
        messages.create(max_tokens=1, **prompt)
    with pytest.raises(anthropic.BadRequestError, match="thinking: this model has no reasoning") as caught:
        messages.count_tokens(**prompt)
    bodies: Any = caught.value.body, of_the_answer.value.body
    assert bodies[0]["error"] == bodies[1]["error"]
