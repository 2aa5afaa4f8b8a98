"""Streams that have nothing to send yet: each API's own event shows that the server still works on the request."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from signal import SIGKILL
from typing import Any, Final

import pytest

from support.http.http_server import MOCK, Server, served, served_process
from support.http.raw_http import CHAT, RawClient

pytestmark = pytest.mark.slow

USER: Final = {"role": "user", "content": "wait"}
COMPLETIONS, MESSAGES, RESPONSES = "/v1/completions", "/v1/messages", "/v1/responses"
PROMPTS: Final[dict[str, Any]] = {
    CHAT: {"messages": [USER]},
    COMPLETIONS: {"prompt": "wait"},
    MESSAGES: {"messages": [USER], "max_tokens": 8},
    RESPONSES: {"input": "wait"},
}
PREFILL: Final[Any] = [
    {"stage": "prefill", "current": 20, "total": 100, "unit": "tokens", "delay_ms": 150},
    {"stage": "prefill", "current": 60, "total": 100, "unit": "tokens", "delay_ms": 150},
    {"stage": "prefill", "current": 100, "total": 100, "unit": "tokens", "delay_ms": 150},
]


HELD: Final = f"{MOCK} --scenario {Path(__file__).parents[1] / 'held_answers.json'}"
"""Command of a mock worker that waits on demand."""
OFTEN: Final = ("--keep-alive", "0.05")
"""Options of a server whose waiting events come at a short interval."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served("--worker", HELD, *OFTEN) as server:
        yield server


@pytest.fixture(scope="module")
def reading_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a mock worker that reports the progress of each prompt, and then waits."""
    scenario = tmp_path_factory.mktemp("scenario") / "prefill.json"
    reply: Any = {"progress": PREFILL, "tokens": ["Read."], "then": "wait"}
    half = {"progress": PREFILL[:1], "tokens": ["Read."]}
    rules = [{"match": {name: "half"}, "reply": half} for name in ("last_message", "prompt")]
    scenario.write_text(json.dumps({"rules": [*rules, {"reply": reply}]}))
    with served("--worker", f"{MOCK} --scenario {scenario}", "--keep-alive", "60") as server:
        yield server


def next_event(client: RawClient) -> tuple[str, Any]:
    """Return the name and the data of the stream's next event. Comments are skipped."""
    fields: dict[str, str] = {}
    while "data" not in fields:
        client.read_until(b"\r\n")  # the size of the part
        lines = client.read_until(b"\n\n").decode().strip().split("\n")
        fields = dict(line.split(": ", 1) for line in lines)
        client.read_until(b"\r\n")
    return fields.get("event", ""), json.loads(fields["data"])


def start_stream(client: RawClient, path: str, **fields: Any) -> None:
    client.ask("POST", path, {"model": "mock", "stream": True, **PROMPTS[path], **fields})
    head = client.read_until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    if path == RESPONSES:
        begun = client.read_until(b"\n\n\r\n")  # a stream begins with two events, which come together
        assert b"event: response.created\n" in begun and b"event: response.in_progress\n" in begun


def is_empty(path: str, name: str, event: Any) -> bool:
    """Return whether an event is the one that the API's clients ignore."""
    match path:
        case "/v1/chat/completions":
            [choice] = event["choices"]
            return (choice["delta"], choice["finish_reason"]) == ({}, None)
        case "/v1/completions":
            [choice] = event["choices"]
            return (choice["text"], choice["finish_reason"]) == ("", None)
        case "/v1/responses":
            assert name == event["type"]
            return name == "response.in_progress" and event["response"]["status"] == "in_progress"
        case _:
            return (name, event) == ("ping", {"type": "ping"})


@pytest.mark.parametrize("path", PROMPTS)
def test_a_stream_that_waits_sends_events_at_intervals(server: Server, path: str) -> None:
    with RawClient(server.url) as client:
        start_stream(client, path)
        for _ in range(3):
            assert is_empty(path, *next_event(client))


@pytest.mark.parametrize("path", PROMPTS)
def test_they_come_while_the_model_is_loaded(server: Server, path: str) -> None:
    with RawClient(server.url) as client:
        start_stream(client, path, model="never")
        assert is_empty(path, *next_event(client))


@pytest.mark.parametrize("path", PROMPTS)
def test_they_come_while_the_request_is_queued(server: Server, path: str) -> None:
    with ExitStack() as others:
        for rows in (16, 16, 16, 16, 8):  # all that the worker is given, those ahead of its batch included
            client = others.enter_context(RawClient(server.url))
            start_stream(client, CHAT, n=rows)
        with RawClient(server.url) as client:
            start_stream(client, path)
            server.wait_for("lmwire_model_requests_waiting", 1, model="mock")
            assert is_empty(path, *next_event(client))
    server.wait_for("lmwire_worker_requests_in_flight", 0, model="mock")


def test_they_come_after_the_first_token_too(server: Server) -> None:
    with RawClient(server.url) as client:
        client.chat("say one and wait", stream=True)
        client.read_until(b'"content":"One"')
        assert b'"delta":{}' in client.read_until(b'"delta":{}')


def test_an_error_after_one_is_an_event() -> None:
    with served_process("--worker", HELD, *OFTEN) as server, RawClient(server.url) as client:
        start_stream(client, CHAT)
        assert is_empty(CHAT, *next_event(client))
        os.kill(server.worker_process(), SIGKILL)
        error: Any = {}
        while "error" not in error:
            error = next_event(client)[1]
        assert error["error"]["code"] == "worker_lost"
        assert client.read_until(b"\r\n") == b"0\r\n"  # the stream ends with it


def test_an_answer_that_is_not_streamed_has_none(server: Server) -> None:
    with RawClient(server.url) as client:
        client.chat("answer late")
        assert client.answer().json["choices"][0]["message"]["content"] == "Late"


def reports_until(client: RawClient, processed: int) -> list[Any]:
    """Return the stream's reports of progress up to the one with this number of tokens. Some between can be missing."""
    reports: list[Any] = [{"processed": 0}]
    while reports[-1]["processed"] != processed:
        event = next_event(client)[1]
        if "prompt_progress" in event:
            reports.append(event["prompt_progress"])
    return reports[1:]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_the_progress_of_a_prompt_is_reported_if_the_request_asks_for_it(reading_server: Server, path: str) -> None:
    with RawClient(reading_server.url) as client:
        start_stream(client, path, return_progress=True)
        reports = reports_until(client, 100)
    assert {(report["total"], report["cache"]) for report in reports} == {(100, 20)}
    assert reports[0]["processed"] == 20
    assert {report["processed"] for report in reports} <= {20, 60, 100}
    times = [report["time_ms"] for report in reports]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("path", "prompt"), [(CHAT, {"messages": [{"role": "user", "content": "half"}]}), (COMPLETIONS, {"prompt": "half"})]
)
def test_the_last_report_says_that_the_prompt_is_done(reading_server: Server, path: str, prompt: Any) -> None:
    with RawClient(reading_server.url) as client:
        start_stream(client, path, return_progress=True, **prompt)
        reports = reports_until(client, 100)
    assert [(report["cache"], report["processed"]) for report in reports][-1] == (20, 100)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_the_progress_of_a_prompt_is_not_reported_unasked(reading_server: Server, path: str) -> None:
    with RawClient(reading_server.url) as client:
        start_stream(client, path)
        assert b"prompt_progress" not in client.read_until(b"Read.")


def test_the_progress_of_several_prompts_is_their_sum(reading_server: Server) -> None:
    with RawClient(reading_server.url) as client:
        start_stream(client, COMPLETIONS, prompt=["one", "two"], return_progress=True)
        last = reports_until(client, 200)[-1]
    assert (last["total"], last["cache"]) == (200, 40)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_a_models_reports_have_the_tokens_that_were_cached(tiny_server: Server, path: str) -> None:
    text = f"The parts of {path} are counted. " * 20
    prompt: Any = {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
    options = {"model": "builtin:tiny", "max_tokens": 2, "stream_options": {"include_usage": True}}
    counts: list[int] = []
    for _ in range(3):
        with RawClient(tiny_server.url) as client:
            start_stream(client, path, return_progress=True, **prompt, **options)
            lines = client.read_until(b"[DONE]").decode().splitlines()
        read: list[Any] = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
        cached = read[-1]["usage"]["prompt_tokens_details"]["cached_tokens"]
        reports = [event["prompt_progress"] for event in read if "prompt_progress" in event]
        assert {report["cache"] for report in reports} == {cached}
        assert reports[-1]["processed"] == reports[-1]["total"] == read[-1]["usage"]["prompt_tokens"]
        counts.append(cached)
    assert counts[0] == 0
    assert any(counts[1:]), "a hit now and then is computed anew, as a check"
