"""The chunks of a streamed chat completion, one by one, of answers that a scenario of the mock worker scripts."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI

from support.http.http_server import MOCK, Server, served
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
RULES: list[dict[str, Any]] = [
    {
        "match": {"last_message": "look"},
        "reply": {
            "reasoning": "I must look.",
            "text": "Let me see.",
            "tool_calls": [
                {"name": "weather", "id": "a", "arguments": {"at": {"city": "Rome"}}},
                {"name": "weather", "id": "b", "arguments": {}},
            ],
        },
    },
    {
        "match": {"last_message": "broken"},
        "reply": {"tool_calls": [{"name": "weather", "id": "a", "arguments": '{"city": "Rome", "x": }}'}]},
    },
    {
        "match": {"last_message": "empty"},
        "reply": {"tool_calls": [{"name": "weather", "id": "a", "arguments": "}"}, {"name": "weather", "id": "b"}]},
    },
    {
        "match": {"last_message": "several"},
        "reply": {"choices": [{"text": "One."}, {"text": "Two two."}, {"text": "", "finish_reason": "length"}]},
    },
    {
        "match": {"last_message": "blanks, then a call"},
        "reply": {"tokens": ["\n", "\n"], "tool_calls": [{"name": "weather", "id": "a"}]},
    },
    {"match": {"last_message": "blanks, then text"}, "reply": {"tokens": ["\n", " ", "a", " ", "b"]}},
    {"match": {"last_message": "blanks alone"}, "reply": {"tokens": ["\n", " "]}},
    {"match": {"last_message": "sampled", "fields": {"temperature": 1.0}}, "reply": {"text": "Sampled."}},
    {"match": {"last_message": "no room"}, "reply": {"text": "Half", "finish_reason": "capacity"}},
    {"match": {"last_message": "fails"}, "reply": {"tokens": ["Half"], "error": {"code": "engine_error"}}},
    {"match": {"last_message": "refused"}, "reply": {"error": {"code": "busy", "retryable": True}}},
    {"match": {"last_message": "slow"}, "reply": {"tokens": ["Half"], "then": "wait"}},
]


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    scenario = tmp_path_factory.mktemp("scenario") / "chat.json"
    scenario.write_text(json.dumps({"rules": RULES}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        yield server


@pytest.fixture(scope="module")
def client(scripted: Server) -> OpenAI:
    return OpenAI(base_url=f"{scripted.url}/v1", api_key="any", max_retries=0)


def post(server: Server, body: Any) -> httpx2.Response:
    return httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=SECONDS)


def events(server: Server, said: str, **fields: Any) -> list[Any]:
    """The data of a stream's events."""
    body = {"model": "mock", "messages": [{"role": "user", "content": said}], "stream": True, **fields}
    reply = post(server, body)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/event-stream")
    frames = reply.text.split("\n\n")
    assert frames.pop() == ""
    return [data if (data := frame.removeprefix("data: ")) == "[DONE]" else json.loads(data) for frame in frames]


def deltas(server: Server, said: str, **fields: Any) -> list[Any]:
    """Return each choice's delta or finish reason, chunk by chunk."""
    *chunks, done = events(server, said, **fields)
    assert done == "[DONE]"
    return [choice["finish_reason"] or choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def arguments(server: Server, said: str) -> dict[int, str]:
    """Return the arguments of each call, put together as a client does."""
    calls: dict[int, str] = {}
    for delta in deltas(server, said, tools=[WEATHER]):
        for call in delta.get("tool_calls", ()) if isinstance(delta, dict) else ():
            calls[call["index"]] = calls.get(call["index"], "") + call["function"]["arguments"]
    return calls


def test_the_role_comes_first_then_the_text_then_the_reason_then_the_end(scripted: Server) -> None:
    assert deltas(scripted, "a b") == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "a "},
        {"content": "b"},
        "stop",
    ]


@pytest.mark.parametrize("logprobs", [False, True])
@pytest.mark.parametrize(
    ("said", "content", "streamed"),
    [
        ("blanks, then a call", None, []),
        ("blanks, then text", "\n a b", ["\n a", " ", "b"]),
        ("blanks alone", "\n ", ["\n "]),
    ],
)
def test_white_space_beside_calls_alone_is_no_content(
    scripted: Server, said: str, content: str | None, streamed: list[str], logprobs: bool
) -> None:
    body: Any = {"model": "mock", "messages": [{"role": "user", "content": said}], "tools": [WEATHER]}
    body["logprobs"] = logprobs
    whole = post(scripted, body).json()["choices"][0]
    assert whole["message"]["content"] == content
    _, *chunks, _done = events(scripted, said, tools=[WEATHER], logprobs=logprobs)
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [choice["delta"]["content"] for choice in choices if "content" in choice["delta"]] == streamed
    for tokens in (
        whole["logprobs"] and whole["logprobs"]["content"],
        [token for choice in choices if choice["logprobs"] for token in choice["logprobs"]["content"]],
    ):
        assert "".join(token["token"] for token in tokens or ()) == ((content or "") if logprobs else "")


def test_the_stop_string_that_ended_the_answer_is_named_streamed_or_not(scripted: Server) -> None:
    body: Any = {"model": "mock", "messages": [{"role": "user", "content": "a b c"}], "stop": ["x", "b"]}
    whole = post(scripted, body).json()["choices"][0]
    assert (whole["finish_reason"], whole["stop_str"]) == ("stop", "b")
    *_, last, _ = events(scripted, "a b c", stop=["x", "b"])
    assert last["choices"][0]["stop_str"] == "b"
    assert all("stop_str" not in choice for chunk in events(scripted, "a")[:-1] for choice in chunk["choices"])


def test_a_text_that_looks_like_json_comes_as_it_is(scripted: Server) -> None:
    text = 'first "" then {"content":""} and \\ \n then \x00 é 😀'
    assert "".join(delta["content"] for delta in deltas(scripted, text)[1:-1]) == text


def test_every_chunk_has_the_fields_that_clients_read(scripted: Server) -> None:
    first, second, last, done = events(scripted, "a")
    assert first == {
        "id": first["id"],
        "object": "chat.completion.chunk",
        "created": first["created"],
        "model": "mock",
        "system_fingerprint": first["system_fingerprint"],
        "choices": [
            {
                "index": 0,
                "delta": {"role": "assistant", "content": "", "refusal": None},
                "logprobs": None,
                "finish_reason": None,
            }
        ],
    }
    assert {second["id"], last["id"]} == {first["id"]}
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert done == "[DONE]"


def test_the_usage_comes_in_a_chunk_of_its_own_and_is_null_before(scripted: Server) -> None:
    *chunks, last, _ = events(scripted, "a b c", stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in chunks] == [None] * len(chunks)
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens"] == 3
    assert last["usage"]["total_tokens"] == 3 + last["usage"]["completion_tokens"]


def test_reasoning_text_and_calls_come_in_their_order(scripted: Server) -> None:
    def call(index: int, arguments: str, **first: Any) -> dict[str, Any]:
        name = {"name": first.pop("name")} if first else {}
        return {"tool_calls": [{"index": index, **first, "function": {**name, "arguments": arguments}}]}

    assert deltas(scripted, "look", tools=[WEATHER]) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"reasoning_content": "I "},
        {"reasoning_content": "must "},
        {"reasoning_content": "look."},
        {"content": "Let "},
        {"content": "me "},
        {"content": "see."},
        call(0, "", id="call_a", type="function", name="weather"),
        call(0, '{"at":'),
        call(0, '{"city":'),
        call(0, '"Rome"'),
        call(0, "}}"),
        call(1, "", id="call_b", type="function", name="weather"),
        call(1, "{"),
        call(1, "}"),
        "tool_calls",
    ]


def test_a_stream_of_calls_is_the_whole_answer(client: OpenAI) -> None:
    asked: Any = {"model": "mock", "messages": [{"role": "user", "content": "look"}], "tools": [WEATHER]}
    whole = client.chat.completions.create(**asked).choices[0]
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert [call.function.arguments for call in whole.message.tool_calls or []] == ['{"at":{"city":"Rome"}}', "{}"]
    assert [call.id for call in streamed.message.tool_calls or []] == ["call_a", "call_b"]
    assert (streamed.message.content, streamed.finish_reason) == (whole.message.content, whole.finish_reason)


def test_a_call_that_is_taken_back_is_never_whole_json_to_the_client(scripted: Server, client: OpenAI) -> None:
    [written] = arguments(scripted, "broken").values()
    assert written == '{"city": "Rome", "x":'
    assert deltas(scripted, "broken", tools=[WEATHER])[-1] == "stop"
    asked: Any = {"model": "mock", "messages": [{"role": "user", "content": "broken"}], "tools": [WEATHER]}
    whole = client.chat.completions.create(**asked).choices[0]
    [call] = whole.message.tool_calls or []
    assert (call.function.arguments, whole.message.content, whole.finish_reason) == (written, None, "stop")


def test_the_client_s_own_stream_bears_a_call_that_is_taken_back(client: OpenAI) -> None:
    asked: Any = {"model": "mock", "messages": [{"role": "user", "content": "broken"}], "tools": [WEATHER]}
    with client.chat.completions.stream(**asked) as stream:
        answer = stream.get_final_completion().choices[0]
    assert answer.finish_reason == "stop"
    assert answer.message.content == ""
    [call] = answer.message.tool_calls or []
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "the arguments are no JSON"}
    turns: Any = [*asked["messages"], answer.message, result]
    after = client.chat.completions.create(**{**asked, "messages": turns})
    assert after.choices[0].message.content == "the arguments are no JSON"


def test_a_call_that_is_taken_back_before_its_arguments_passes_for_none_without_any(scripted: Server) -> None:
    assert arguments(scripted, "empty") == {0: "{", 1: "{}"}
    assert deltas(scripted, "empty", tools=[WEATHER])[-1] == "tool_calls"


def test_choices_interleave_and_each_has_its_role_and_its_end(scripted: Server) -> None:
    *chunks, _ = events(scripted, "several", n=3)
    choices = [chunk["choices"][0] for chunk in chunks]
    for index, (text, reason) in enumerate([("One.", "stop"), ("Two two.", "stop"), ("", "length")]):
        of_it = [choice for choice in choices if choice["index"] == index]
        assert of_it[0]["delta"]["role"] == "assistant"
        assert "".join(choice["delta"].get("content", "") for choice in of_it) == text
        assert [choice["finish_reason"] for choice in of_it if choice["finish_reason"]] == [reason]


def test_without_a_temperature_answers_are_sampled_at_1_as_openai_s_clients_expect(client: OpenAI) -> None:
    asked: Any = {"model": "mock", "messages": [{"role": "user", "content": "sampled"}]}
    assert client.chat.completions.create(**asked).choices[0].message.content == "Sampled."
    assert client.chat.completions.create(**asked, temperature=0).choices[0].message.content == "sampled"


def test_what_is_cut_short_for_any_reason_ends_with_length(scripted: Server) -> None:
    assert deltas(scripted, "no room")[-1] == "length"
    assert deltas(scripted, "slow", timeout_ms=50)[-1] == "length"


def test_a_failure_before_the_first_chunk_is_a_status(client: OpenAI) -> None:
    with pytest.raises(openai.RateLimitError) as failure:
        client.chat.completions.create(model="mock", messages=[{"role": "user", "content": "refused"}], stream=True)
    assert failure.value.response.headers["retry-after"] == "1"


def test_a_failure_amid_the_stream_is_its_last_event(client: OpenAI) -> None:
    stream = client.chat.completions.create(model="mock", messages=[{"role": "user", "content": "fails"}], stream=True)
    received = ""
    with pytest.raises(openai.APIError) as failure:
        for chunk in stream:
            received += chunk.choices[0].delta.content or ""
    assert received == "Half"
    assert failure.value.body["code"] == "engine_error"  # type: ignore[index]
