"""/health and /ready: the one while the process lives, the other while it can serve, with the reason when it cannot."""

from pathlib import Path
from typing import Any

import pytest

from lmwire_http.pool.readiness import HANG_MS, hang_problem
from lmwire_protocol.events import PingDone
from support.http.http_server import MOCK, Server, served, wait_until
from support.http.raw_http import CHAT, RawClient, asked, chat_body

WORKER = f"{MOCK} --scenario {Path(__file__).parents[1] / 'held_answers.json'}"


def ready(server: Server) -> tuple[int, str | None]:
    answer = asked(server.url, "GET", "/ready")
    assert answer.json["ready"] == (answer.status == 200)
    return answer.status, answer.json.get("reason")


def test_a_server_that_has_nothing_to_load_is_ready_when_a_worker_can_be_started() -> None:
    with served("--worker", MOCK) as server:
        wait_until(lambda: ready(server) == (200, None), "it is not ready")
        assert server.wait_for_line("lmwire: the host is")  # it has started one


@pytest.mark.slow
def test_a_server_whose_worker_cannot_start_is_not_ready() -> None:
    with served("--worker", "/no/such/worker") as server:
        wait_until(lambda: ready(server)[1] != "the models are being loaded", "it is loading what is not there")
        assert ready(server) == (503, "no worker can be started; see the log")
        assert "/no/such/worker" in server.wait_for_line("no worker can be started")
        assert asked(server.url, "GET", "/health").status == 200


def test_a_server_that_loads_is_alive_and_not_ready() -> None:
    with served("never", "--preload", "--worker", WORKER) as server:
        assert asked(server.url, "GET", "/health").json == {"status": "ok"}
        assert ready(server) == (503, "the models are being loaded")


def test_a_server_that_loads_reports_how_far_the_load_has_come() -> None:
    with served("mock", "--preload", "--worker", f"{MOCK} --fault slow-load:seconds=600") as server:

        def load_progress() -> Any:
            return asked(server.url, "GET", "/ready").json.get("load_progress")

        wait_until(lambda: load_progress() is not None, "the load reports nothing")
        assert load_progress().keys() >= {"stage", "current", "unit"}


def test_a_request_waits_for_what_is_being_loaded() -> None:
    with served("mock", "--preload", "--worker", f"{MOCK} --fault slow-load:seconds=1") as server:
        assert asked(server.url, "POST", CHAT, chat_body("hello")).status == 200


def test_a_server_that_has_loaded_is_ready() -> None:
    with served("mock", "--preload", "--worker", WORKER) as server:
        wait_until(lambda: ready(server) == (200, None), "it is not ready")
        assert server.figure("lmwire_model_loaded", model="mock") == 1


@pytest.mark.slow
def test_a_dead_worker_of_a_preloaded_model_is_reported_and_replaced_without_a_request() -> None:
    with served("mock", "--preload", "--worker", f"{MOCK} --fault crash-after-terminal") as server:
        wait_until(lambda: ready(server) == (200, None), "it is not ready")
        with RawClient(server.url) as client:
            client.chat("hello")
            client.answer()
        server.wait_for("lmwire_worker_deaths_total", 1)
        assert ready(server) == (503, "mock: its worker has died, and another is being started")
        wait_until(lambda: ready(server) == (200, None), "it is not ready again")


def test_a_busy_worker_is_ready() -> None:
    with served("mock", "--worker", WORKER) as server, RawClient(server.url) as client:
        client.chat("wait", stream=True)
        server.wait_for("lmwire_worker_requests_active", 1)
        wait_until(lambda: ready(server) == (200, None), "it is not ready")


def ping(age_ms: float | None) -> PingDone:
    return PingDone(id="1", state="running", step_age_ms=age_ms, active=1, queued=0)


@pytest.mark.parametrize(
    ("pings", "problem"),
    [
        ([ping(None)], None),
        ([ping(20)], None),
        ([ping(HANG_MS)], "m: its worker has made no progress for 60 s"),
        ([ping(HANG_MS), ping(20)], None),
        ([ping(HANG_MS), None], "m: its worker has made no progress for 60 s"),
        ([None], "m: its worker does not answer"),
        ([None, ping(None)], None),
    ],
)
def test_workers_hang_when_none_of_them_makes_progress(pings: list[PingDone | None], problem: str | None) -> None:
    assert hang_problem("m", pings) == problem
