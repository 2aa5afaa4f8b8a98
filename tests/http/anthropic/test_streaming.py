"""Streams of /v1/messages: the order of their events, which Anthropic's client puts together, and how they break."""

import asyncio
import json
from typing import Any

import anthropic
import httpx2
import pytest

from support.http.anthropic_http import MODEL, WEATHER, async_client, client, user
from support.http.http_server import Server
from support.process.worker_process import SECONDS

TINY = "builtin:tiny"


def events(server: Server, content: Any, **options: Any) -> list[Any]:
    options = {"max_tokens": 100, **options}
    stream = client(server).messages.create(model=MODEL, messages=[user(content)], stream=True, **options)
    return list(stream)


def shape(event: Any) -> str:
    match event.type:
        case "content_block_start":
            return f"{event.index} {event.content_block.type}"
        case "content_block_delta":
            return f"{event.index} {event.delta.type}"
        case "content_block_stop":
            return f"{event.index} stop"
        case _:
            return event.type


def test_events_come_in_anthropics_order(scripted_server: Server) -> None:
    came = [shape(event) for event in events(scripted_server, "weather in Rome", tools=[WEATHER])]
    without_repeats = [now for now, before in zip(came, [None, *came], strict=False) if now != before]
    assert without_repeats == [
        "message_start",
        "0 thinking",
        "0 thinking_delta",
        "0 signature_delta",
        "0 stop",
        "1 text",
        "1 text_delta",
        "1 stop",
        "2 tool_use",
        "2 input_json_delta",
        "2 stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.parametrize(
    "content", ["weather in Rome", "weather everywhere", "weather broken", "think aloud", "blanks", "and so on"]
)
def test_a_stream_put_together_is_the_whole_answer(scripted_server: Server, content: str) -> None:
    options: Any = {"model": MODEL, "max_tokens": 100, "messages": [user(content)], "tools": [WEATHER]}
    whole = client(scripted_server).messages.create(**options)
    with client(scripted_server).messages.stream(**options) as stream:
        streamed = stream.get_final_message()
    assert [block.to_dict() for block in streamed.content] == [block.to_dict() for block in whole.content]
    assert (streamed.stop_reason, streamed.model) == (whole.stop_reason, whole.model)
    assert streamed.usage.output_tokens == whole.usage.output_tokens


def test_the_start_has_the_length_of_the_prompt_and_the_end_the_cached_tokens(scripted_server: Server) -> None:
    words = "five words of no other"
    events(scripted_server, words, max_tokens=1)
    start, *_, delta, _ = events(scripted_server, words, max_tokens=1)
    assert (start.message.usage.input_tokens, start.message.usage.cache_read_input_tokens) == (5, None)
    assert (delta.usage.input_tokens, delta.usage.cache_read_input_tokens, delta.usage.output_tokens) == (1, 4, 1)


def test_a_stop_sequence_is_reported_at_the_end(scripted_server: Server) -> None:
    *_, delta, _ = events(scripted_server, "one two three", stop_sequences=["two"])
    assert (delta.delta.stop_reason, delta.delta.stop_sequence) == ("stop_sequence", "two")


def test_an_answer_without_tokens_is_a_start_and_an_end(scripted_server: Server) -> None:
    came = [event.type for event in events(scripted_server, "one two", max_tokens=0)]
    assert came == ["message_start", "message_delta", "message_stop"]


def test_reasoning_that_is_not_shown_has_no_text(scripted_server: Server) -> None:
    came = events(scripted_server, "think aloud", thinking={"type": "adaptive", "display": "omitted"})
    assert "0 thinking" in map(shape, came)
    assert "0 thinking_delta" not in map(shape, came)


@pytest.mark.slow
def test_text_comes_to_tasks_as_it_does_to_threads(tiny_server: Server) -> None:
    options: Any = {
        "model": TINY,
        "max_tokens": 60,
        "messages": [user("Who are you?")],
        "extra_body": {"temperature": 0},
    }

    async def streamed() -> tuple[str, str]:
        async with async_client(tiny_server) as tasks, tasks.messages.stream(**options) as stream:
            text = "".join([part async for part in stream.text_stream])
            return text, await stream.get_final_text()

    with client(tiny_server).messages.stream(**options) as stream:
        expected = "".join(stream.text_stream)
    assert "lmwire" in expected
    assert asyncio.run(streamed()) == (expected, expected)


def test_what_is_refused_is_refused_before_the_stream(scripted_server: Server) -> None:
    with pytest.raises(anthropic.BadRequestError, match="top_p"):
        events(scripted_server, "hello", extra_body={"top_p": 7})


def test_what_breaks_amid_a_stream_is_an_event_of_it(scripted_server: Server) -> None:
    with pytest.raises(anthropic.APIStatusError, match="api_error"):
        events(scripted_server, "breaks later")
    body = {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [user("breaks later")]}
    response = httpx2.post(f"{scripted_server.url}/v1/messages", json=body, timeout=SECONDS)
    assert response.status_code == 200
    name, data = response.text.rstrip().split("\n\n")[-1].split("\n")
    error = json.loads(data.removeprefix("data: "))
    assert (name, error["type"], error["error"]["type"]) == ("event: error", "error", "api_error")


def test_a_client_that_leaves_its_stream_ends_the_work(scripted_server: Server) -> None:
    events(scripted_server, "hello")  # so that the worker runs, and reports its metrics
    scripted_server.wait_for("lmwire_worker_requests_active", 0, model=MODEL)  # also of what an earlier test has left
    before = scripted_server.figure("lmwire_worker_requests_total", outcome="cancelled", model=MODEL)
    waiting: Any = {"model": MODEL, "max_tokens": 9, "messages": [user("wait")]}
    with client(scripted_server).messages.stream(**waiting) as stream:
        assert next(iter(stream.text_stream)) == "I"
    scripted_server.wait_for("lmwire_worker_requests_total", before + 1, outcome="cancelled", model=MODEL)
