"""/v1/messages through Anthropic's own client: whole answers, stop reasons and rejected requests."""

import asyncio
from typing import Any

import anthropic
import pytest
from pydantic import BaseModel

from support.http.anthropic_http import MODEL, WEATHER, async_client, client, user
from support.http.http_server import Server

TINY = "builtin:tiny"


class Person(BaseModel):
    """Somebody."""

    name: str
    born: int


@pytest.fixture(scope="module")
def scripted(scripted_server: Server) -> anthropic.Anthropic:
    return client(scripted_server)


@pytest.fixture(scope="module")
def tiny(tiny_server: Server) -> anthropic.Anthropic:
    return client(tiny_server)


def say(client: anthropic.Anthropic, content: Any, **options: Any) -> Any:
    options = {"model": MODEL, "max_tokens": 100, **options}
    return client.messages.create(messages=[user(content)], **options)


@pytest.mark.slow
def test_an_answer_is_a_message_with_its_text_and_its_usage(tiny: anthropic.Anthropic) -> None:
    message = say(tiny, "Who are you?", model=TINY, extra_body={"temperature": 0})
    assert (message.type, message.role, message.model, message.stop_reason) == (
        "message",
        "assistant",
        TINY,
        "end_turn",
    )
    assert "lmwire" in message.content[0].text
    assert "citations" not in message.content[0].model_fields_set
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens == 13
    assert message.usage.output_tokens > 3


@pytest.mark.slow
def test_tasks_get_the_same_answers(tiny_server: Server) -> None:
    async def answers() -> list[str]:
        async with async_client(tiny_server) as client:
            messages = await asyncio.gather(
                *(
                    client.messages.create(
                        model=TINY, max_tokens=60, messages=[user("Who are you?")], extra_body={"temperature": 0}
                    )
                    for _ in range(3)
                )
            )
        return [block.text for message in messages for block in message.content if block.type == "text"]

    first, *others = asyncio.run(answers())
    assert first and others == [first, first]


def test_cached_tokens_of_a_prompt_are_counted_separately(scripted_server: Server) -> None:
    words = "nobody else says these seven words"
    first, second = (say(client(scripted_server), words, max_tokens=1).usage for _ in range(2))
    assert (first.input_tokens, first.cache_read_input_tokens) == (6, 0)
    assert second.input_tokens + second.cache_read_input_tokens == 6
    assert second.cache_read_input_tokens == 5


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ("say this", {}, "max_tokens"),
        ("think aloud", {}, "end_turn"),
        ("weather in Rome", {"tools": [WEATHER]}, "tool_use"),
        ("go on and on", {}, "model_context_window_exceeded"),
        ("no memory", {}, "model_context_window_exceeded"),
        ("wait", {"extra_body": {"timeout_ms": 50}}, "pause_turn"),
    ],
)
def test_the_stop_reason_has_anthropics_values(
    scripted: anthropic.Anthropic, content: str, options: Any, reason: str
) -> None:
    assert say(scripted, content, **options).stop_reason == reason


def test_a_stop_sequence_that_came_is_named(scripted: anthropic.Anthropic) -> None:
    message = say(scripted, "one two three", stop_sequences=["four", "two"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "two")
    assert message.content[0].text == "one "


def test_no_tokens_only_read_the_prompt(scripted: anthropic.Anthropic) -> None:
    message = say(scripted, "one two three", max_tokens=0)
    assert (message.content, message.stop_reason, message.usage.output_tokens) == ([], "max_tokens", 0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "defaults"),
        ({"thinking": {"type": "adaptive"}}, "defaults"),
        ({"thinking": {"type": "disabled"}}, "off"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "on, 2000"),
        ({"output_config": {"effort": "low"}}, "low if it reasons"),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, "low if it reasons"),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}, "off"),
        ({"extra_body": {"temperature": 0.5, "top_p": 0.9, "top_k": 20, "seed": 7, "min_p": 0.1}}, "sampled"),
    ],
)
def test_options_reach_the_worker(scripted: anthropic.Anthropic, options: Any, expected: str) -> None:
    assert say(scripted, "options", **options).content[-1].text == expected


def test_fields_that_change_no_answer_are_taken(scripted: anthropic.Anthropic) -> None:
    message = say(
        scripted,
        [{"type": "text", "text": "options", "cache_control": {"type": "ephemeral"}}],
        metadata={"user_id": "ada"},
        service_tier="auto",
        extra_headers={"anthropic-version": "2023-06-01", "anthropic-beta": "any-2026-01-01"},
        extra_body={"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
    )
    assert message.content[0].text == "defaults"


@pytest.mark.slow
def test_an_answer_continues_what_the_last_message_began(tiny: anthropic.Anthropic) -> None:
    messages: Any = [user("What is 2 + 3?"), {"role": "assistant", "content": "2 + 3 ="}]
    message = tiny.messages.create(model=TINY, max_tokens=20, messages=messages, extra_body={"temperature": 0})
    assert message.content[0].type == "text"
    assert message.content[0].text.startswith(" 5")


@pytest.mark.slow
def test_data_is_parsed_into_the_clients_own_type(tiny: anthropic.Anthropic) -> None:
    message = tiny.messages.parse(
        model=TINY, max_tokens=60, messages=[user("Ada was born in 1815.")], output_format=Person
    )
    assert isinstance(message.parsed_output, Person)


@pytest.mark.slow
def test_reasoning_is_a_block_before_the_text(tiny: anthropic.Anthropic) -> None:
    message = say(
        tiny,
        "What is 17 + 25?",
        model=TINY,
        thinking={"type": "enabled", "budget_tokens": 1024},
        extra_body={"temperature": 0},
    )
    reasoning, text = message.content
    assert (reasoning.type, text.type) == ("thinking", "text")
    assert reasoning.thinking and reasoning.signature
    assert "42" in text.text
    assert 0 < message.usage.output_tokens_details.thinking_tokens < message.usage.output_tokens


def test_reasoning_that_is_not_shown_is_an_empty_block(scripted: anthropic.Anthropic) -> None:
    thinking = {"type": "adaptive", "display": "omitted"}
    reasoning, text = say(scripted, "think aloud", thinking=thinking).content
    assert (reasoning.type, reasoning.thinking, text.text) == ("thinking", "", "It is 4.")
