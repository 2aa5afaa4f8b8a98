"""Shutdown of the server: requests finish, clients receive a response, workers exit, and the exit code is right."""

import re
import subprocess
import sys
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest

from support.http.http_server import MOCK, ServerProcess, served_process, wait_until
from support.http.raw_http import CHAT, RawClient, asked, request
from support.nightly import nightly_but
from support.process.process_waits import is_there
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "held_answers.json"
WORKER = f"{MOCK} --scenario {SCRIPT}"


def ended(server: ServerProcess, signal: Signals = SIGTERM) -> int:
    server.process.send_signal(signal)
    return server.process.wait(SECONDS)


def children(pid: int) -> list[int]:
    shown = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(child) for child, parent in map(str.split, shown.splitlines()) if int(parent) == pid]


@pytest.mark.parametrize("signal", nightly_but({SIGINT}, [SIGTERM, SIGINT]))  # other tests send the other
def test_a_signal_ends_it_and_its_workers_with_exit_code_0(signal: Signals) -> None:
    with served_process("--worker", WORKER) as server:
        with RawClient(server.url) as idle:
            idle.chat("Hello")
            assert idle.answer().status == 200
            workers = children(server.process.pid)
            assert workers
            assert ended(server, signal) == 0
        assert not any(map(is_there, workers))
        assert "Traceback" not in "".join(server.log)


def test_the_end_of_stdin_ends_it_in_order_if_asked() -> None:
    command = [sys.executable, "-P", "-m", "lmwire_http", "--port", "0", "--worker", WORKER, "--stop-at-eof"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stderr
        url = re.findall(r"serves on (\S+)", process.stderr.readline())[0]
        with RawClient(url) as client:
            client.chat("Hello")
            assert client.answer().status == 200
            process.stdin.close()
            assert process.wait(SECONDS) == 0


@pytest.mark.nightly
def test_a_signal_as_soon_as_it_serves_ends_it_with_exit_code_0() -> None:
    for _ in range(20):
        with served_process("--worker", WORKER):
            pass  # the block's end sends SIGTERM and looks at the code


def test_a_request_that_ends_in_time_is_answered() -> None:
    with served_process("--worker", WORKER) as server, RawClient(server.url) as client:
        client.chat("answer late")
        server.wait_for("lmwire_queue_seconds_count", 1)  # unlike a number of active requests, it stays
        server.process.send_signal(SIGTERM)
        assert client.answer().json["choices"][0]["message"]["content"] == "Late"
        assert client.at_end()
        assert server.process.wait(SECONDS) == 0


def test_a_streamed_response_that_exceeds_the_shutdown_time_is_a_failed_one() -> None:
    with served_process("--worker", WORKER, "--drain", "0.2") as server, RawClient(server.url) as client:
        client.ask("POST", "/v1/responses", {"model": "mock", "input": "say one and wait", "stream": True})
        client.read_until(b'"delta":"One"')
        server.process.send_signal(SIGTERM)
        last = client.read_until(b"0\r\n\r\n")
        assert b"event: response.failed" in last and b"the server" in last
        assert client.at_end()
        assert server.process.wait(SECONDS) == 0


def test_a_request_that_exceeds_the_shutdown_time_gets_an_error() -> None:
    with served_process("--worker", WORKER, "--drain", "0.2") as server:
        streamed, whole, half, anthropic = clients = [RawClient(server.url) for _ in range(4)]
        streamed.chat("say one and wait", stream=True)
        streamed.read_until(b"One")
        whole.chat("wait")
        half.send(request("POST", CHAT, b"{", content_length="100"))
        messages = [{"role": "user", "content": "wait"}]
        anthropic.ask("POST", "/v1/messages", {"model": "mock", "messages": messages, "max_tokens": 9})
        server.wait_for("lmwire_http_requests_in_flight", 5)  # those, and the one who asks
        server.wait_for("lmwire_worker_requests_active", 3)
        server.process.send_signal(SIGTERM)
        assert b'"code":"server_ending"' in streamed.read_until(b"0\r\n\r\n")
        for client in (whole, half):
            answer = client.answer()
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            assert answer.json["error"]["code"] == "server_ending"
        assert anthropic.answer().json["error"]["type"] == "overloaded_error"
        assert all(client.at_end() for client in clients)
        assert server.process.wait(SECONDS) == 0
        server.wait_for_line("4 running requests were ended")
        for client in clients:
            client.close()


def test_new_requests_are_refused_during_the_shutdown() -> None:
    with served_process("--worker", WORKER) as server, RawClient(server.url) as client:
        client.chat("wait", stream=True)
        server.wait_for("lmwire_worker_requests_active", 1)
        server.process.send_signal(SIGTERM)
        wait_until(lambda: not answers(server.url), "the server still lets clients in")
        client.close()
        assert server.process.wait(SECONDS) == 0


def test_a_second_signal_ends_it_at_once() -> None:
    with served_process("--worker", WORKER) as server, RawClient(server.url) as client:
        client.chat("wait", stream=True)
        server.wait_for("lmwire_worker_requests_active", 1)
        workers = children(server.process.pid)
        server.process.send_signal(SIGTERM)
        server.wait_for_line("the server stops")
        assert ended(server) == -SIGTERM
        wait_until(lambda: not any(map(is_there, workers)), "a worker is left")


def test_a_server_that_still_loads_ends_too() -> None:
    with served_process("never", "--preload", "--worker", WORKER) as server, RawClient(server.url) as client:
        client.ask("GET", "/health")
        assert client.answer().status == 200
        assert ended(server) == 0


def test_a_server_that_cannot_preload_a_model_reports_why_and_ends() -> None:
    with served_process("other", "--preload", "--worker", MOCK) as server:
        assert server.process.wait(SECONDS) == 69
        assert "the mock engine has one model" in server.wait_for_line("cannot start")
        assert "Traceback" not in "".join(server.log)


def answers(url: str) -> bool:
    try:
        return asked(url, "GET", "/health").status == 200
    except OSError:
        return False
    except EOFError:
        return False
