"""Streams of /v1/responses: the order of their events, which OpenAI's client puts together, and how they break."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from support.http.http_server import MOCK, Server, served

WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}


@pytest.fixture(scope="module")
def client(scripted_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{scripted_server.url}/v1", api_key="any", max_retries=0)


def events(client: OpenAI, input: str, **options: Any) -> list[Any]:
    return list(client.responses.create(model="mock", input=input, stream=True, **options))


def test_events_come_in_openais_order(client: OpenAI) -> None:
    came = [event.type.removeprefix("response.") for event in events(client, "weather in Rome", tools=[WEATHER])]
    without_repeats = [now for now, before in zip(came, [None, *came], strict=False) if now != before]
    assert without_repeats == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]


def test_events_are_numbered_and_name_their_items(client: OpenAI) -> None:
    came = events(client, "weather in Rome", tools=[WEATHER])
    assert [event.sequence_number for event in came] == list(range(len(came)))
    output = came[-1].response.output
    for event in came:
        if hasattr(event, "item_id"):
            assert event.item_id == output[event.output_index].id
        if event.type == "response.output_item.done":
            assert event.item == output[event.output_index]


@pytest.mark.parametrize("text", ["weather in Rome", "weather everywhere", "weather broken", "think aloud", "blanks"])
def test_a_stream_put_together_is_the_whole_response(client: OpenAI, text: str) -> None:
    def plain(items: Any) -> list[Any]:
        return [item.to_dict() | {"id": None} for item in items]

    whole = client.responses.create(model="mock", input=text, tools=[WEATHER])
    streamed = events(client, text, tools=[WEATHER])[-1].response
    assert plain(streamed.output) == plain(whole.output)
    assert streamed.status == whole.status
    with client.responses.stream(model="mock", input=text, tools=[WEATHER]) as stream:
        together = stream.get_final_response()
    assert together.output_text == whole.output_text
    assert [item.type for item in together.output] == [item.type for item in whole.output]


def test_a_streamed_response_goes_on_too(client: OpenAI) -> None:
    first = events(client, "one two")[-1].response
    second = events(client, "three", previous_response_id=first.id)[-1].response
    assert second.previous_response_id == first.id
    assert len(client.responses.input_items.list(second.id).data) == 3


@pytest.mark.slow
def test_text_comes_to_tasks(tiny_server: Server) -> None:
    async def streamed() -> tuple[str, str]:
        async with AsyncOpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0) as client:
            options: Any = {"model": "builtin:tiny", "input": "Who are you?", "temperature": 0}
            async with client.responses.stream(**options) as stream:
                deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
                return "".join(deltas), (await stream.get_final_response()).output_text

    deltas, text = asyncio.run(streamed())
    assert deltas == text
    assert "lmwire" in text


def test_log_probabilities_come_with_their_text(client: OpenAI) -> None:
    came = events(client, "one two", include=["message.output_text.logprobs"])
    tokens = [token.token for event in came if event.type == "response.output_text.delta" for token in event.logprobs]
    assert tokens == ["one ", "two"]
    assert [token.token for token in came[-1].response.output[0].content[0].logprobs] == tokens


def test_an_answer_that_is_cut_short_ends_incomplete(client: OpenAI) -> None:
    *_, done, last = events(client, "one two three", max_output_tokens=2)
    assert (done.type, done.item.status) == ("response.output_item.done", "incomplete")
    assert (last.type, last.response.incomplete_details.reason) == ("response.incomplete", "max_output_tokens")


def test_an_answer_without_tokens_is_a_beginning_and_an_end(client: OpenAI) -> None:
    came = [event.type for event in events(client, "one two", max_output_tokens=0)]
    assert came == ["response.created", "response.in_progress", "response.incomplete"]


def test_a_failure_amid_a_stream_is_reported_with_the_output_so_far(client: OpenAI) -> None:
    *_, last = events(client, "breaks later")
    assert (last.type, last.response.status, last.response.error.code) == ("response.failed", "failed", "server_error")
    assert "the scenario says so" in last.response.error.message
    assert last.response.output[0].content[0].text == "Half"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(last.response.id)


def test_a_stream_that_broke_counts_as_failed(client: OpenAI, scripted_server: Server) -> None:
    counted: Any = {"path": "/v1/responses", "status": "500"}
    before = scripted_server.figure("lmwire_http_requests_total", **counted)
    events(client, "breaks later")
    scripted_server.wait_for("lmwire_http_requests_total", before + 1, **counted)


def test_a_client_that_leaves_its_stream_ends_the_work(client: OpenAI, scripted_server: Server) -> None:
    events(client, "hello")  # so that the worker runs, and reports its metrics
    scripted_server.wait_for("lmwire_worker_requests_active", 0, model="mock")  # also of what an earlier test has left
    before = scripted_server.figure("lmwire_worker_requests_total", outcome="cancelled", model="mock")
    with client.responses.create(model="mock", input="wait", stream=True) as stream:
        next(event for event in stream if event.type == "response.output_text.delta")
    scripted_server.wait_for("lmwire_worker_requests_total", before + 1, outcome="cancelled", model="mock")


def test_what_is_refused_is_refused_before_the_stream(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="top_p"):
        events(client, "hello", top_p=7)


@pytest.fixture(scope="module")
def failing_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a mock worker that fails with a message about a field and with an API key."""
    error = {"code": "engine_error", "field": "max_tokens", "message": "max_tokens: too many for sk-secret-1"}
    rules: list[Any] = [
        {"match": {"last_message": "late"}, "reply": {"text": "Half", "error": error}},
        {"match": {"last_message": "silent"}, "reply": {"tokens": [{"text": "", "delay_ms": 300}], "error": error}},
    ]
    rules += [
        {"match": {"last_message": code}, "reply": {"text": "Half", "error": {"code": code}}}
        for code in ("busy", "context_overflow", "invalid_request", "engine_error")
    ]
    scenario = tmp_path_factory.mktemp("scenario") / "failing.json"
    scenario.write_text(json.dumps({"rules": rules}))
    options = ("--api-key", "sk-secret-1", "--keep-alive", "0.05", "--worker", f"{MOCK} --scenario {scenario}")
    with served(*options) as server:
        yield server


def failed_stream(server: Server, input: str, **fields: Any) -> Any:
    """Return the events of a stream that fails."""
    client = OpenAI(base_url=f"{server.url}/v1", api_key="sk-secret-1", max_retries=0)
    return list(client.responses.create(model="mock", input=input, stream=True, extra_body=fields))


@pytest.mark.parametrize(("name", "field"), [("max_output_tokens", "max_output_tokens"), ("max_tokens", "max_tokens")])
def test_a_failure_amid_a_stream_names_the_clients_field_and_no_key(
    failing_server: Server, name: str, field: str
) -> None:
    *_, last = failed_stream(failing_server, "late", **{name: 9})
    assert last.type == "response.failed"
    assert last.response.error.message.startswith(f"{field}: too many for ")
    assert "sk-secret-1" not in last.to_json()


def test_a_failure_after_waiting_events_is_a_failed_response(failing_server: Server) -> None:
    first, second, *_, last = failed_stream(failing_server, "silent")
    assert (first.type, second.type) == ("response.created", "response.in_progress")
    assert (last.type, last.response.status, last.response.output) == ("response.failed", "failed", [])


def test_numbers_go_on_through_waiting_events(failing_server: Server) -> None:
    numbers = [event.sequence_number for event in failed_stream(failing_server, "silent")]
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("busy", "rate_limit_exceeded"),
        ("context_overflow", "context_length_exceeded"),
        ("invalid_request", "invalid_prompt"),
        ("engine_error", "server_error"),
    ],
)
def test_a_failed_response_has_openais_code(failing_server: Server, failure: str, code: str) -> None:
    assert failed_stream(failing_server, failure)[-1].response.error.code == code
