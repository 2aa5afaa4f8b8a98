"""A worker that hangs: it is ended, its requests end with an error, and the next one is served by another.

tests/client/test_watchdog.py tests what counts as a hang. Here a test decides it; only the nightly tests wait for one.
"""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from lmwire import AsyncWorker, WorkerHung, supervisor
from support.http.http_server import MOCK, served, served_process, wait_until
from support.http.raw_http import CHAT, RawClient, asked, chat_body
from support.process.process_waits import is_there, stop
from support.process.stepped_worker import in_a_row
from support.process.worker_process import SECONDS

STEP_LIMIT = "12"
"""Seconds. A worker that is well answers in a thousandth of that, but a busy machine may hold it up."""
PROBLEM = "the model's process hung and was ended, and this request with it; the next request starts a new one"
NO_PROGRESS = "made no progress for 12 s while requests waited for it, and was ended"
ON_WORKERS = "lmwire_worker_requests_in_flight"

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


class Watchdogs:
    """Watchdogs without clocks: a worker hangs when the test says so."""

    def __init__(self) -> None:
        self._watched: list[tuple[asyncio.AbstractEventLoop, AsyncWorker, float]] = []

    async def watch(self, worker: AsyncWorker, step_limit: float) -> None:
        """Take the place of `run_watchdog`."""
        self._watched.append((asyncio.get_running_loop(), worker, step_limit))

    def end(self, number: int) -> None:
        """End a worker that hangs, once it has been started.

        Args:
            number: How many workers were started before it.
        """
        wait_until(lambda: len(self._watched) > number, "the worker has not been started")
        loop, worker, step_limit = self._watched[number]
        asyncio.run_coroutine_threadsafe(worker.abort(WorkerHung(step_limit, True)), loop).result(SECONDS)


@pytest.fixture
def watchdogs(monkeypatch: pytest.MonkeyPatch) -> Watchdogs:
    watchdogs = Watchdogs()
    monkeypatch.setattr(supervisor, "run_watchdog", watchdogs.watch)
    return watchdogs


def stuck_at_first(folder: Path, command: str, then: str = "") -> str:
    """Return the command of workers of which the first answers no request of a kind to its end.

    Args:
        folder: Where they keep their files.
        command: The kind of request.
        then: The plan of the workers after it.
    """
    scenario = folder / "stuck.json"
    reply = {"then": "wait"} if command == "load" else {"text": "One", "then": "wait"}
    scenario.write_text(json.dumps({"rules": [{"match": {"cmd": command}, "reply": reply}]}))
    return shlex.join(in_a_row(folder / "workers", f"--scenario {scenario}", then))


@pytest.mark.parametrize(("path", "body", "kind"), DIALECTS)
def test_requests_on_a_worker_that_hangs_end_with_an_error_and_the_next_gets_another_worker(
    path: str, body: dict[str, Any], kind: str, tmp_path: Path, watchdogs: Watchdogs
) -> None:
    command = stuck_at_first(tmp_path, "generate" if "prompt" in body else "chat")
    with served("--worker", command, "--step-limit", STEP_LIMIT) as server:
        with RawClient(server.url) as streaming, RawClient(server.url) as waiting:
            streaming.ask("POST", path, body | {"stream": True})
            waiting.ask("POST", path, body)
            server.wait_for(ON_WORKERS, 2)
            watchdogs.end(0)
            assert b" 200 OK" in streaming.read_until(b"\r\n\r\n")
            streaming.read_until(PROBLEM.encode())
            whole = waiting.answer()
        assert (whole.status, whole.json["error"]["type"], whole.json["error"]["message"]) == (503, kind, PROBLEM)
        assert whole.headers["retry-after"] == "1"
        assert asked(server.url, "POST", path, body).status == 200
        assert server.figure("lmwire_worker_hangs_total", model="mock", replica="0") == 1
        assert server.figure("lmwire_worker_restarts_total", model="mock", replica="0") == 1
        assert server.wait_for_line(NO_PROGRESS)


def test_a_hang_does_not_affect_other_models(tmp_path: Path, watchdogs: Watchdogs) -> None:
    with served("--worker", stuck_at_first(tmp_path, "chat", "--token-ms 5"), "--step-limit", STEP_LIMIT) as server:
        with RawClient(server.url) as doomed, RawClient(server.url) as other:
            doomed.chat("hello", stream=True)
            doomed.read_until(b"One")
            other.chat("on and on", model="mock:step_ms=1", stream=True, max_tokens=100_000)
            other.read_until(b"on ")
            watchdogs.end(0)
            doomed.read_until(PROBLEM.encode())
            other.read_until(b"on ")
        assert server.figure("lmwire_worker_hangs_total", model="mock:step_ms=1") == 0


def test_a_load_that_hangs_is_ended_and_the_next_request_loads_anew(tmp_path: Path, watchdogs: Watchdogs) -> None:
    with served("--worker", stuck_at_first(tmp_path, "load"), "--step-limit", STEP_LIMIT) as server:
        with RawClient(server.url) as client:
            client.chat("hello")
            watchdogs.end(0)
            answer = client.answer()
        assert (answer.status, answer.json["error"]["message"]) == (503, PROBLEM)
        assert asked(server.url, "POST", CHAT, chat_body("hello")).status == 200


@pytest.mark.nightly
def test_a_worker_is_ended_when_it_has_made_no_progress_for_the_limit(tmp_path: Path) -> None:
    command = shlex.join(in_a_row(tmp_path / "workers", "--fault stall:after=1", ""))
    with served_process("--worker", command, "--step-limit", STEP_LIMIT) as server:
        assert asked(server.url, "POST", CHAT, chat_body("hello")).json["error"]["message"] == PROBLEM
        assert asked(server.url, "POST", CHAT, chat_body("hello")).status == 200
        wait_until(lambda: not is_there(server.worker_process()), "the worker is still there")
        assert server.wait_for_line(NO_PROGRESS)


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_load_may_take_long_while_it_reports_progress() -> None:
    with served("--worker", f"{MOCK} --fault slow-load:seconds=15", "--step-limit", STEP_LIMIT) as server:
        assert asked(server.url, "POST", CHAT, chat_body("hello")).status == 200
        assert server.figure("lmwire_worker_deaths_total") == 0
