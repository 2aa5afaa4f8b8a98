"""The log: one line for each request, for people or for programs, without the text of prompts and answers."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from lmwire_http.http.endpoint import Reply
from lmwire_http.telemetry.logs import (
    JsonFormatter,
    StderrHandler,
    StderrWriter,
    TextFormatter,
    join_within,
    log_facts,
    redact,
)
from support.http.asgi_exchange import exchanged
from support.http.http_server import MOCK, Server, served_process, wait_until
from support.http.raw_http import CHAT, RawClient, asked, chat_body

SECRET = "marcasite"
"""A word that no other test writes: servers on threads share their log."""


@pytest.fixture(scope="module")
def json_server() -> Iterator[Server]:
    with served_process("--worker", MOCK, "--log-format", "json") as server:
        yield server


def line_of(server: Server, request_id: str) -> str:
    return server.wait_for_line(request_id)


def test_a_request_is_a_line_of_names_and_values(mock_server: Server) -> None:
    asked(mock_server.url, "POST", CHAT, chat_body("three words here"), x_request_id="in-text")
    _, level, message, *facts = line_of(mock_server, "in-text").split()
    named = dict(fact.split("=", 1) for fact in facts)
    assert (level, message) == ("info", "request")
    assert float(named.pop("seconds")) > 0
    assert named == {
        "method": "POST",
        "path": CHAT,
        "status": "200",
        "model": "mock",
        "prompt_tokens": "3",
        "completion_tokens": "3",
        "request_id": "in-text",
    }


@pytest.mark.slow
def test_debug_adds_a_line_for_each_request_that_arrives() -> None:
    with served_process("--worker", MOCK, "--log-level", "debug") as server:
        asked(server.url, "POST", CHAT, chat_body(SECRET), x_request_id="arrives")
        line = server.wait_for_line("debug request received .*arrives")
        assert f"method=POST path={CHAT} request_id=arrives" in line
    assert SECRET not in "".join(server.log)


@pytest.mark.slow
def test_less_important_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s"
    command = [sys.executable, "-P", "-m", "lmwire_http", "--uds", str(path), "--log-level", "warning", "--worker"]
    with subprocess.Popen([*command, f"{MOCK} --fault failed-load"], stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: listens(path), "the server does not listen")
            asked(f"unix:{path}", "POST", CHAT, chat_body("hello"))
        finally:
            process.terminate()
        lines = process.communicate()[1].splitlines()
    assert lines
    assert {line.split()[1] for line in lines} == {"warning"}


def listens(path: Path) -> bool:
    """Return whether a server listens on a socket. The file of the socket is there a moment earlier."""
    try:
        RawClient(f"unix:{path}").close()
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    return True


@pytest.mark.slow
def test_with_log_format_json_a_request_is_a_json_object(json_server: Server) -> None:
    asked(json_server.url, "POST", CHAT, chat_body("three words here"), x_request_id="in-json")
    line = json.loads(line_of(json_server, "in-json"))
    assert line.pop("seconds") > 0
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "lmwire_http",
        "message": "request",
        "method": "POST",
        "path": CHAT,
        "status": 200,
        "model": "mock",
        "prompt_tokens": 3,
        "completion_tokens": 3,
        "request_id": "in-json",
    }


@pytest.mark.slow
def test_with_log_format_json_every_line_is_a_json_object(json_server: Server) -> None:
    asked(json_server.url, "POST", CHAT, chat_body("hello"))
    asked(json_server.url, "GET", "/health", bad_header="\0")
    json_server.wait_for_line("Invalid HTTP request")
    json_server.wait_for_line("lmwire_http.worker")  # a thread of its own reads what the worker logs
    loggers = {json.loads(line)["logger"] for line in json_server.log}
    assert {"lmwire_http", "lmwire_http.worker", "uvicorn.error"} <= loggers


def test_a_stream_has_its_tokens_counted_too(mock_server: Server) -> None:
    asked(mock_server.url, "POST", CHAT, chat_body("four words are here", stream=True), x_request_id="streamed")
    assert "prompt_tokens=4 completion_tokens=4" in line_of(mock_server, "streamed")


def test_the_line_of_a_request_without_a_model_names_no_model(mock_server: Server) -> None:
    asked(mock_server.url, "GET", "/health", x_request_id="healthy")
    assert "model=" not in line_of(mock_server, "healthy")


def test_a_path_is_logged_as_served_and_not_as_written(mock_server: Server) -> None:
    """A client that writes its key, or anything else, into the path has none of it in the log."""
    asked(mock_server.url, "GET", "/v1/a%0Ainfo%20forged", x_request_id="unknown-path")
    assert "path=unknown" in line_of(mock_server, "unknown-path")
    asked(mock_server.url, "GET", f"/v1/models/{SECRET}?key={SECRET}", x_request_id="models-path")
    assert "path=/v1/models/{model}" in line_of(mock_server, "models-path")
    assert not [line for line in mock_server.log if SECRET in line or "forged" in line]


def test_a_model_cannot_make_lines_of_its_own(mock_server: Server) -> None:
    body = chat_body("hello", model="a\u2028info status=200 forged")
    asked(mock_server.url, "POST", CHAT, body, x_request_id="forged-model")
    assert r'model="a\u2028info status=200 forged"' in line_of(mock_server, "forged-model")


@pytest.mark.slow
@pytest.mark.parametrize("body", [chat_body(SECRET), chat_body(SECRET, colour=SECRET), SECRET.encode()])
@pytest.mark.parametrize("query", ["", f"?key={SECRET}"])
def test_the_log_contains_nothing_of_the_conversation(json_server: Server, body: Any, query: str) -> None:
    asked(json_server.url, "POST", CHAT + query, body, x_request_id="discreet")
    line_of(json_server, "discreet")
    assert SECRET not in "".join(json_server.log)


def test_a_failure_of_the_server_is_logged_without_the_conversation(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(*_: object) -> Reply:
        raise ValueError(SECRET)

    sent = exchanged(serve)
    assert (sent.status, sent.code) == (500, "internal")
    assert "failed with ValueError in" in caplog.text
    assert "raise ValueError(SECRET)" in caplog.text
    assert SECRET not in caplog.text + str(sent)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_what_is_no_exception_is_a_failure_of_the_request_and_not_the_server(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(*_: object) -> Reply:
        raise error

    sent = exchanged(serve)
    assert (sent.status, sent.code) == (500, "internal")
    assert f"failed with {type(error).__name__} in" in caplog.text


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_an_exception_of_a_library_is_shown(formatter: logging.Formatter) -> None:
    try:
        raise OSError("no disk")
    except OSError:
        record = logging.LogRecord("library", logging.ERROR, "", 0, "it %s", ("fails",), sys.exc_info())
    shown = formatter.format(record)
    assert "it fails" in shown
    assert "OSError: no disk" in shown


def test_a_reader_of_the_log_that_stops_delays_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stderr that nobody reads holds some lines, the server some more, and those after them are counted."""
    reading, writing = os.pipe()
    saved = os.dup(2)
    monkeypatch.setattr("lmwire_http.telemetry.logs._MAX_WAITING", 100)
    os.dup2(writing, 2)
    with StderrWriter() as writer:
        lines = StderrHandler(writer)
        lines.setFormatter(TextFormatter())
        logger = logging.getLogger("lmwire_http")
        logger.addHandler(lines)
        try:
            for _ in range(1000):
                log_facts(logging.WARNING, "x" * 1000, {})
            os.set_blocking(reading, False)
            read = b""
            while b"lines=" not in read:
                try:
                    read += os.read(reading, 65536)
                except BlockingIOError:
                    log_facts(logging.WARNING, "and another", {})
        finally:
            logger.removeHandler(lines)
            os.dup2(saved, 2)
            for descriptor in (saved, writing, reading):
                os.close(descriptor)
    assert read.count(b"x" * 1000) < 1000
    assert b"lines of the log were dropped before this one" in read


def test_a_pause_of_the_server_takes_only_a_step_of_the_time_for_the_last_lines() -> None:
    """A process that stands still wakes with all waits at their end, while its threads have got nothing done."""

    class SlowThread(Thread):
        def __init__(self) -> None:
            super().__init__()
            self.waits: list[float] = []

        def join(self, timeout: float | None = None) -> None:
            self.waits.append(timeout or 0)

        def is_alive(self) -> bool:
            return len(self.waits) < 3

    join_within(thread := SlowThread(), 2)
    assert len(thread.waits) == 3
    assert sum(thread.waits) < 2


@pytest.mark.slow
def test_the_servers_options_are_not_in_the_log(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(SECRET)
    with served_process("--api-key-file", str(keys), "--worker", MOCK) as server:
        asked(server.url, "GET", "/metrics", x_request_id="refused", authorization="Bearer wrong")
        line_of(server, "refused")
    assert SECRET not in "".join(server.log)


def test_keys_and_tokens_of_the_hub_are_replaced() -> None:
    token = f"hf_{'aB3' * 12}"
    text = redact(f"GET https://user:{token}@hub with sesame\n", ("sesame",))
    assert text == "GET https://user:[hub token]@hub with [API key]\n"
    assert redact("hf_transfer and hf_hub", ()) == "hf_transfer and hf_hub"
