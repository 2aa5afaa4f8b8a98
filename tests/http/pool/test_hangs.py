"""A worker that hangs: it is ended, its requests end with an error, and the next one is served by another."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.http.http_server import MOCK, served, served_process, wait_until
from support.http.raw_http import CHAT, RawClient, asked, chat_body
from support.process.process_waits import is_there, stop
from support.process.stepped_worker import in_a_row, let_through

pytestmark = pytest.mark.slow

STEP_LIMIT = "12"
"""Seconds. A worker that is well answers in a thousandth of that, but a busy machine may hold it up."""
PROBLEM = "the model's process hung and was ended, and this request with it; the next request starts a new one"
STALLS = "--fault stall:after=1"
WAITING = "lmwire_model_requests_waiting"

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


def check_hang(folder: Path, path: str, body: dict[str, Any], kind: str) -> None:
    """Check what becomes of a stream and of another request, both on a worker that hangs, and of the next request."""
    command = shlex.join(in_a_row(folder, f"gate {STALLS}", ""))
    with served_process("--worker", command, "--step-limit", STEP_LIMIT) as server:
        with RawClient(server.url) as streaming, RawClient(server.url) as waiting:
            streaming.ask("POST", path, body | {"stream": True})
            server.wait_for(WAITING, 1)
            waiting.ask("POST", path, body)
            server.wait_for(WAITING, 2)
            let_through(folder, 0)
            assert b" 200 OK" in streaming.read_until(b"\r\n\r\n")
            streaming.read_until(PROBLEM.encode())
            whole = waiting.answer()
        assert (whole.status, whole.json["error"]["type"], whole.json["error"]["message"]) == (503, kind, PROBLEM)
        assert whole.headers["retry-after"] == "1"
        assert asked(server.url, "POST", path, body).status == 200
        wait_until(lambda: not is_there(server.worker_process()), "the worker is still there")
        assert server.figure("lmwire_worker_hangs_total", model="mock", replica="0") == 1
        assert server.figure("lmwire_worker_restarts_total", model="mock", replica="0") == 1
        assert server.wait_for_line("made no progress for 12 s while requests waited for it, and was ended")


def test_requests_on_a_worker_that_hangs_end_with_an_error_and_the_next_gets_another_worker(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    checks = [pool.submit(check_hang, tmp_path / str(number), *each) for number, each in enumerate(DIALECTS)]
    for check in checks:
        check.result()


def test_a_worker_that_answers_nothing_hangs_too_and_so_it_is_with_a_real_model() -> None:
    short = chat_body("Who are you?", model="builtin:tiny", max_tokens=3)
    with served_process("builtin:tiny", "--step-limit", STEP_LIMIT) as server:
        assert asked(server.url, "POST", CHAT, short).status == 200
        stopped = server.worker_process()
        stop(stopped)
        answer = asked(server.url, "POST", CHAT, short)
        assert (answer.status, answer.json["error"]["message"]) == (503, PROBLEM)
        assert server.wait_for_line("did not answer for 12 s")
        assert asked(server.url, "POST", CHAT, short).status == 200
        wait_until(lambda: not is_there(stopped), "the worker is still there")
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
    with served("--worker", f"{MOCK} --fault slow-load:seconds=15", "--step-limit", STEP_LIMIT) as server:
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
