"""Log-probabilities list exactly the tokens of the content: none of a thought, a marker, a call or a stop string."""

from collections.abc import Iterator
from typing import Any, Final

import openai
import pytest

from support.http.http_server import Server
from support.nightly import nightly_but

pytestmark = pytest.mark.slow

MODEL: Final = "builtin:tiny"
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Final[Any] = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Get the weather of a city.", "parameters": SCHEMA},
}
RESULT: Final = {"role": "tool", "tool_call_id": "a", "content": "sunny, 21 degrees"}
CALLED: Final = {
    "role": "assistant",
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
    ],
}
PARIS: Final = {"role": "user", "content": "What is the weather in Paris?"}
ASKED: Final[dict[str, Any]] = {
    "text": {"messages": [{"role": "user", "content": "Who are you?"}], "reasoning_effort": "none"},
    "a thought": {"messages": [{"role": "user", "content": "What is 17 + 25?"}], "reasoning_effort": "high"},
    "a thought cut off": {
        "messages": [{"role": "user", "content": "What is 17 + 25?"}],
        "reasoning_effort": "high",
        "max_tokens": 3,
    },
    "a call": {"messages": [PARIS], "tools": [TOOL]},
    "a call cut off": {"messages": [PARIS], "tools": [TOOL], "max_tokens": 12},
    "text after a call": {"messages": [PARIS, CALLED, RESULT], "tools": [TOOL]},
    "a stop string": {"messages": [{"role": "user", "content": "Who are you?"}], "stop": ["iny mod"]},
    "a stop string within a token": {"messages": [{"role": "user", "content": "Who are you?"}], "stop": ["mw"]},
    "a stop string that is shown": {
        "messages": [{"role": "user", "content": "Who are you?"}],
        "stop": ["mw"],
        "extra_body": {"include_stop": True},
    },
    "what may become a stop string": {
        "messages": [{"role": "user", "content": "Who are you?"}],
        "stop": ["the tiny model that is not"],
    },
    "any characters": {
        "messages": [{"role": "user", "content": "Who are you?"}],
        "temperature": 2,
        "seed": 5,
        "max_tokens": 60,
        "reasoning_effort": "none",
        "extra_body": {"ignore_eos": True},
    },
}

WITHOUT_CONTENT: Final = ("a thought cut off", "a call", "a call cut off")
WITH_CONTENT: Final = ("text", "a thought", "text after a call", "a stop string", "any characters")


@pytest.fixture(scope="module")
def client(tiny_server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def joined(tokens: Any) -> bytes:
    return b"".join(bytes(token.bytes) for token in tokens)


@pytest.mark.parametrize("name", ASKED)
def test_logprobs_of_a_chat_completion_are_those_of_its_content(client: openai.OpenAI, name: str) -> None:
    asked = ASKED[name]
    options: Any = {"model": MODEL, "temperature": 0, "logprobs": True, "top_logprobs": 2, **asked}
    whole = client.chat.completions.create(**options).choices[0]
    assert name not in (WITHOUT_CONTENT if whole.message.content else WITH_CONTENT)
    tokens = whole.logprobs.content if whole.logprobs else None
    assert tokens is not None
    assert joined(tokens) == (whole.message.content or "").encode()
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(stream=True, **options)]
    for chunk in chunks:
        assert chunk.logprobs is None or chunk.delta.content or "stop" in asked
    streamed = [token for chunk in chunks if chunk.logprobs for token in chunk.logprobs.content or ()]
    assert [(token.token, token.bytes) for token in streamed] == [(token.token, token.bytes) for token in tokens]
    assert "".join(chunk.delta.content or "" for chunk in chunks) == (whole.message.content or "")


@pytest.mark.parametrize("name", nightly_but({"a thought"}, ["text", "a thought", "a call", "a call cut off"]))
def test_logprobs_of_a_response_are_those_of_its_content(client: openai.OpenAI, name: str) -> None:
    asked = ASKED[name]
    options: Any = {
        "model": MODEL,
        "input": asked["messages"],
        "temperature": 0,
        "include": ["message.output_text.logprobs"],
        "reasoning": {"effort": asked.get("reasoning_effort", "none")},
    }
    if "max_tokens" in asked:
        options["max_output_tokens"] = asked["max_tokens"]
    if "tools" in asked:
        options["tools"] = [{"type": "function", **TOOL["function"]}]
    whole = client.responses.create(**options)
    for item in whole.output:
        if item.type == "message":
            [part] = item.content
            assert part.type == "output_text"
            assert joined(part.logprobs) == part.text.encode()
    events = [event for event in client.responses.create(stream=True, **options)]
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    text_bytes = b"".join(bytes(token.to_dict()["bytes"]) for event in deltas for token in event.logprobs)  # type: ignore[arg-type]
    assert text_bytes == whole.output_text.encode()


@pytest.mark.parametrize("stop", [None, ["iny"], ["mw"]])
def test_logprobs_of_a_text_completion_are_those_of_its_text(client: openai.OpenAI, stop: Any) -> None:
    options: Any = {"model": MODEL, "prompt": "I am", "max_tokens": 20, "temperature": 0, "logprobs": 0, "stop": stop}
    whole = client.completions.create(**options).choices[0]
    assert whole.logprobs
    assert "".join(whole.logprobs.tokens or ()) == whole.text
    assert whole.logprobs.text_offset == [
        len("".join((whole.logprobs.tokens or [])[:place])) for place in range(len(whole.logprobs.tokens or []))
    ]
    chunks = [chunk.choices[0] for chunk in client.completions.create(stream=True, **options)]
    tokens = [token for chunk in chunks if chunk.logprobs for token in chunk.logprobs.tokens or ()]
    assert tokens == whole.logprobs.tokens


def test_logprobs_of_a_mock_worker_are_those_of_its_content(scripted_server: Server) -> None:
    with openai.OpenAI(base_url=f"{scripted_server.url}/v1", api_key="any", max_retries=0) as client:
        for words in ("weather in Rome", "weather everywhere", "weather broken", "think aloud", "blanks"):
            for stop in (None, ["men"], ["is"]):
                options: Any = {"model": "mock", "messages": [{"role": "user", "content": words}], "logprobs": True}
                whole = client.chat.completions.create(**options, tools=[TOOL], stop=stop).choices[0]
                tokens = whole.logprobs.content if whole.logprobs else None
                assert joined(tokens or ()) == (whole.message.content or "").encode()
