"""/v1/messages/count_tokens counts what /v1/messages reads."""

from typing import Any

import pytest

from anthropic_http import WEATHER, client, user
from http_server import Server

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


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_count_is_the_input_of_the_answer(tiny_server: Server, name: str) -> None:
    anthropic = client(tiny_server)
    counted = anthropic.messages.count_tokens(model=TINY, **CONVERSATIONS[name]).input_tokens
    usage = anthropic.messages.create(model=TINY, max_tokens=1, **CONVERSATIONS[name]).usage
    assert counted == usage.input_tokens + (usage.cache_read_input_tokens or 0)
