"""/v1/messages/count_tokens counts what /v1/messages reads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER
from support.http.anthropic_http import WEATHER, client, user
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import RawClient, asked

pytestmark = pytest.mark.slow

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


PROMPTS = [(name, thinking) for name in CONVERSATIONS for thinking in THINKING]
SAMPLE = [(name, thinking) for name, thinking in PROMPTS if name == "tools" or thinking == "unset"]
"""Each conversation and each kind of thinking, but not both of each."""


@pytest.mark.parametrize(
    ("name", "thinking"), [pytest.param(*each, marks=() if each in SAMPLE else pytest.mark.nightly) for each in PROMPTS]
)
def test_the_count_is_the_input_of_the_answer(tiny_server: Server, name: str, thinking: str) -> None:
    messages = client(tiny_server).messages
    prompt: dict[str, Any] = {"model": TINY, **CONVERSATIONS[name], **THINKING[thinking]}
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


def test_thinking_that_the_model_cannot_do_is_ignored_as_it_is_for_an_answer(tiny_server: Server) -> None:
    messages = client(tiny_server).messages.with_raw_response
    template = {"chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}"}
    prompt: Any = {"model": TINY, **CONVERSATIONS["a text"], **THINKING["enabled"], "extra_body": template}
    answered, counted = messages.create(max_tokens=1, **prompt), messages.count_tokens(**prompt)
    assert [answer.headers[IGNORED_FIELDS_HEADER] for answer in (answered, counted)] == ["thinking", "thinking"]
    usage = answered.parse().usage
    assert counted.parse().input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_fifty_counts_at_once_wait_for_no_generation_and_no_limit_refuses_them() -> None:
    """Agents count the tokens of many files together, while they wait for an answer."""
    script = Path(__file__).parents[1] / "held_answers.json"
    prompt = {"model": "mock", "messages": [user("one two three")]}
    with (
        served("--worker", f"{MOCK} --scenario {script}", "--max-queue", "1") as server,
        RawClient(server.url) as generating,
        ThreadPoolExecutor(50) as pool,
    ):
        generating.chat("say one and wait", stream=True)
        generating.read_until(b'"content":"One"')
        path = "/v1/messages/count_tokens"
        answers = [pool.submit(asked, server.url, "POST", path, prompt) for _ in range(50)]
        assert [answer.result().json for answer in answers] == [{"input_tokens": 3}] * 50
        refused = asked(server.url, "POST", "/v1/messages", {**prompt, "max_tokens": 1})
        assert refused.status == 429


def test_counts_do_not_wait_for_the_generation_of_a_real_model(tiny_server: Server) -> None:
    long = {"model": TINY, "max_tokens": 4000, "stream": True, "ignore_eos": True, "messages": [user("Hi")]}
    with RawClient(tiny_server.url) as generating:
        generating.ask("POST", "/v1/messages", long)
        generating.read_until(b"content_block_delta")
        prompt: Any = {"model": TINY, **CONVERSATIONS["a text"]}
        counts = {client(tiny_server).messages.count_tokens(**prompt).input_tokens for _ in range(5)}
        assert len(counts) == 1
        assert b"message_stop" not in generating.read_until(b"content_block_delta")
