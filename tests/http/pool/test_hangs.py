"""A worker that hangs: it is ended, its requests end with an error, and the next one is served by another."""

import os
import re
import shlex
from pathlib import Path
from signal import SIGSTOP
from typing import Any

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, RawClient, asked, chat_body
from support.process.process_waits import wait_gone, watch
from support.process.stepped_worker import in_a_row

STEP_LIMIT = "4"
"""Seconds. A worker that is well answers in a thousandth of that."""
PATIENT_LIMIT = "15"
"""For a model that computes, which a busy machine may hold up."""
PROBLEM = "the model's process hung and was ended, and this request with it; the next request starts a new one"
STALLS = "--fault stall:after=1"

DIALECTS: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, chat_body("hello"), "server_error"),
    ("/v1/completions", {"model": "mock", "prompt": "hello"}, "server_error"),
    ("/v1/responses", {"model": "mock", "input": "hello"}, "server_error"),
    (
        "/v1/messages",
        {"model": "mock", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]},
        "overloaded_error",
    ),
]


def loaded(server: Server) -> int:
    """The process of the first worker that has loaded a model."""
    found = re.search(r"worker (\d+) has loaded", server.wait_for_line("has loaded"))
    assert found
    return int(found[1])


@pytest.mark.parametrize(("path", "body", "kind"), DIALECTS, ids=[path for path, _, _ in DIALECTS])
def test_requests_on_a_worker_that_hangs_end_with_an_error_and_the_next_gets_another_worker(
    tmp_path: Path, path: str, body: dict[str, Any], kind: str
) -> None:
    command = shlex.join(in_a_row(tmp_path, STALLS, ""))
    with served("--worker", command, "--step-limit", STEP_LIMIT) as server:
        with RawClient(server.url) as streaming, RawClient(server.url) as waiting:
            streaming.ask("POST", path, body | {"stream": True})
            streaming.read_until(b"\r\n\r\n")
            process = watch(loaded(server))
            waiting.ask("POST", path, body)
            assert PROBLEM in streaming.read_until(PROBLEM.encode()).decode()
            whole = waiting.answer()
        assert (whole.status, whole.json["error"]["type"], whole.json["error"]["message"]) == (503, kind, PROBLEM)
        assert whole.headers["retry-after"] == "1"
        assert asked(server.url, "POST", path, body).status == 200
        wait_gone(process)
        assert server.figure("lmwire_worker_hangs_total", model="mock", replica="0") == 1
        assert server.figure("lmwire_worker_restarts_total", model="mock", replica="0") == 1
        assert server.wait_for_line("made no progress for 4 s while requests waited for it, and was ended")


def test_a_worker_that_answers_nothing_hangs_too_and_so_it_is_with_a_real_model() -> None:
    with served("builtin:tiny", "--step-limit", PATIENT_LIMIT) as server:
        with RawClient(server.url) as client:
            client.chat("Count to a thousand.", model="builtin:tiny", stream=True, max_tokens=1900, logit_bias={})
            client.read_until(b"data: ")
            process = watch(stopped := loaded(server))
            os.kill(stopped, SIGSTOP)
            client.read_until(PROBLEM.encode())
        assert server.wait_for_line("did not answer for 15 s")
        answer = asked(server.url, "POST", CHAT, chat_body("Who are you?", model="builtin:tiny", max_tokens=3))
        assert answer.status == 200
        wait_gone(process)
        assert server.figure("lmwire_worker_hangs_total") == 1


def test_a_hang_does_not_affect_other_models(tmp_path: Path) -> None:
    command = shlex.join(in_a_row(tmp_path, STALLS, "--token-ms 5"))
    with served("--worker", command, "--step-limit", STEP_LIMIT) as server:
        with RawClient(server.url) as doomed, RawClient(server.url) as other:
            doomed.chat("hello", stream=True)
            doomed.read_until(b"\r\n\r\n")
            other.chat("on and on", model="mock:step_ms=1", stream=True, max_tokens=100_000)
            other.read_until(b"on ")
            doomed.read_until(PROBLEM.encode())
            other.read_until(b"on ")
        assert server.figure("lmwire_worker_hangs_total", model="mock:step_ms=1") == 0


def test_a_load_may_take_long_while_it_reports_progress() -> None:
    with served("--worker", f"{MOCK} --fault slow-load:seconds=6", "--step-limit", STEP_LIMIT) as server:
        assert asked(server.url, "POST", CHAT, chat_body("hello")).status == 200
        assert server.figure("lmwire_worker_deaths_total") == 0


def test_a_load_that_hangs_is_ended_and_the_next_request_loads_anew(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text('{"rules": [{"match": {"cmd": "load"}, "reply": {"then": "hang"}}]}')
    command = shlex.join(in_a_row(tmp_path / "workers", f"--scenario {scenario}", ""))
    with served("--worker", command, "--step-limit", STEP_LIMIT) as server:
        answer = asked(server.url, "POST", CHAT, chat_body("hello"))
        assert (answer.status, answer.json["error"]["message"]) == (503, PROBLEM)
        assert asked(server.url, "POST", CHAT, chat_body("hello")).status == 200
