"""Token counts in each chunk of a stream: `continuous_usage_stats`, vLLM's option."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import pytest
from openai import OpenAI

from support.http.http_server import Server, served

TINY: Final = "builtin:tiny"
CONTINUOUS: Final[Any] = {"include_usage": True, "continuous_usage_stats": True}
TOOLS: Final[Any] = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def drafting() -> Iterator[Server]:
    with served(TINY, "--draft", TINY) as server:
        yield server


def client_of(server: Server) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def chat(server: Server, words: str, options: Any = CONTINUOUS, **fields: Any) -> list[Any]:
    """Return the chunks of a streamed chat completion."""
    messages: Any = [{"role": "user", "content": words}]
    request: Any = {"model": TINY, "messages": messages, "temperature": 0, "stream_options": options, **fields}
    return [*client_of(server).chat.completions.create(stream=True, **request)]


def complete(server: Server, prompt: Any, **fields: Any) -> list[Any]:
    """Return the chunks of a streamed completion."""
    request: Any = {"model": TINY, "prompt": prompt, "temperature": 0, "stream_options": CONTINUOUS, **fields}
    return [*client_of(server).completions.create(stream=True, **request)]


def check_counts(chunks: Sequence[Any]) -> None:
    """Check that the counts of chunks grow to those of the last chunk."""
    counts = [chunk.usage for chunk in chunks]
    assert all(one.completion_tokens <= next_.completion_tokens for one, next_ in pairwise(counts))
    assert all(each.total_tokens == each.prompt_tokens + each.completion_tokens for each in counts)
    assert counts[0].completion_tokens < counts[-1].completion_tokens
    *_, end, last = chunks
    assert last.choices == []
    assert last.usage.prompt_tokens_details.cached_tokens is not None
    assert end.usage.completion_tokens == last.usage.completion_tokens


@pytest.mark.slow
def test_each_chunk_of_a_chat_has_the_usage_so_far(tiny_server: Server) -> None:
    chunks = chat(tiny_server, "Who are you?", max_tokens=5)
    check_counts(chunks)
    prompt = chunks[-1].usage.prompt_tokens
    assert [chunk.usage.prompt_tokens for chunk in chunks] == [prompt] * len(chunks)
    texts = [chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert [chunk.usage.completion_tokens for chunk in texts] == [1, 2, 3, 4, 5]
    plain = chat(tiny_server, "Who are you?", {"include_usage": True}, max_tokens=5)[-1].usage
    assert plain.completion_tokens == chunks[-1].usage.completion_tokens
    assert plain.prompt_tokens == prompt


@pytest.mark.slow
def test_several_choices_are_counted_together(tiny_server: Server) -> None:
    chunks = chat(tiny_server, "Who are you?", n=3, max_tokens=4)
    check_counts(chunks)
    assert chunks[-1].usage.completion_tokens == 12
    assert {chunk.usage.prompt_tokens for chunk in chunks} == {chunks[-1].usage.prompt_tokens}


@pytest.mark.slow
def test_the_prompts_of_a_completion_are_counted_together(tiny_server: Server) -> None:
    chunks = complete(tiny_server, ["One, two,", "a b c d"], n=2, max_tokens=3)
    check_counts(chunks)
    assert chunks[-1].usage.completion_tokens == 12


@pytest.mark.slow
def test_accepted_drafts_are_counted(drafting: Server) -> None:
    chunks = chat(drafting, "Who are you?", max_tokens=20)
    check_counts(chunks)
    assert chunks[-1].usage.completion_tokens_details.accepted_prediction_tokens > 0


def test_reasoning_and_tool_calls_are_counted(scripted_server: Server) -> None:
    chunks = chat(scripted_server, "weather in Rome", model="mock", tools=TOOLS)
    check_counts(chunks)
    assert any(chunk.choices and chunk.choices[0].delta.tool_calls for chunk in chunks)
    assert chunks[-1].usage.completion_tokens_details.reasoning_tokens > 0


@pytest.mark.slow
def test_the_end_of_a_chat_is_counted_with_its_finish_reason(tiny_server: Server) -> None:
    *_, end, last = chat(tiny_server, "What is 2 + 2?", max_tokens=100)
    assert end.choices[0].finish_reason == "stop"
    assert end.usage.completion_tokens == last.usage.completion_tokens


@pytest.mark.slow
def test_continuous_usage_alone_ends_with_the_usage(tiny_server: Server) -> None:
    check_counts(chat(tiny_server, "Who are you?", {"continuous_usage_stats": True}, max_tokens=3))


@pytest.mark.slow
def test_continuous_usage_has_no_effect_if_the_usage_is_refused(tiny_server: Server) -> None:
    options = {"continuous_usage_stats": True, "include_usage": False}
    assert not any(chunk.usage for chunk in chat(tiny_server, "Who are you?", options, max_tokens=3))


def test_continuous_usage_is_a_known_field(mock_server: Server) -> None:
    create: Any = client_of(mock_server).chat.completions.with_streaming_response.create
    messages = [{"role": "user", "content": "a"}]
    with create(model="mock", messages=messages, stream=True, stream_options=CONTINUOUS) as answer:
        assert "x-lmwire-ignored-fields" not in answer.headers
