"""The chunk with a stream's usage: without choices, or with the last one for clients that need one."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from openai import OpenAI

from support.http.http_server import MOCK, Server, served

OPTIONS: Final[Any] = {"model": "mock", "max_tokens": 3, "stream": True, "n": 2}
USAGE: Final[Any] = {"include_usage": True}
WORDS: Final[Any] = [{"role": "user", "content": "a b c"}]


@pytest.fixture(scope="module")
def repeating() -> Iterator[Server]:
    with served("--worker", MOCK, "--usage-chunk", "choice") as server:
        yield server


def chunks_of(server: Server, **options: Any) -> list[list[Any]]:
    """Return the chunks of a chat completion and of a completion with two prompts."""
    client = OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    chat = client.chat.completions.create(messages=WORDS, **OPTIONS, **options)
    completion = client.completions.create(prompt=["a b c", "d e f"], **OPTIONS, **options)
    return [[*chat], [*completion]]


def test_the_usage_chunk_has_no_choices(mock_server: Server) -> None:
    for *chunks, last in chunks_of(mock_server, stream_options=USAGE):
        assert last.choices == []
        assert last.usage.completion_tokens
        assert not any(chunk.usage for chunk in chunks)


def test_the_usage_chunk_repeats_the_last_choice_on_request(repeating: Server) -> None:
    for *chunks, last in chunks_of(repeating, stream_options=USAGE):
        assert last.choices == chunks[-1].choices
        assert last.choices[0].finish_reason == "length"
        assert last.usage.completion_tokens
        assert not any(chunk.usage for chunk in chunks)


def test_the_usage_chunk_is_sent_on_request_only(repeating: Server) -> None:
    for chunks in chunks_of(repeating):
        assert not any(chunk.usage for chunk in chunks)
