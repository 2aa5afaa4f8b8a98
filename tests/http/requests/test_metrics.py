"""/metrics: the server's own counts, and the figures that its workers report on request."""

import re
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lmwire_http.telemetry.metrics import Metrics
from lmwire_protocol.events import Usage
from support.http.http_server import MOCK, Server, served, wait_until
from support.http.raw_http import CHAT, Answer, RawClient, asked, chat_body

_UNITS = ("_seconds", "_bytes", "_total", "_up", "_loaded", "_in_flight", "_waiting", "_active", "_queued", "_entries")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that has answered a request of three words in and three out, whole and streamed, and again."""
    with served("mock", "--worker", MOCK) as server:
        for stream in (False, True):
            assert asked(server.url, "POST", CHAT, chat_body("three words here", stream=stream)).status == 200
        yield server


@pytest.fixture(scope="module")
def text(server: Server) -> str:
    """Return the metrics with those of the worker: one that does not answer the server in time has none."""
    answers: list[Answer] = []

    def read() -> bool:
        answers[:] = [asked(server.url, "GET", "/metrics")]
        return b"lmwire_worker_memory_bytes{" in answers[0].body

    wait_until(read, "the worker does not report its memory")
    assert answers[0].headers["content-type"].startswith("text/plain; version=")
    return answers[0].body.decode()


def test_prometheus_parses_the_metrics(text: str) -> None:
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["lmwire_worker_memory_bytes"].type == "gauge"
    assert all(family.documentation.endswith(".") for family in families.values())


def test_every_metric_is_named_by_prometheus_conventions(text: str) -> None:
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(names) == len(set(names))
    assert not [name for name in names if not (name.startswith("lmwire_") and name.endswith(_UNITS))]


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("lmwire_http_requests_total", {"path": CHAT, "model": "mock", "status": "200"}, 2),
        ("lmwire_http_request_duration_seconds_count", {"path": CHAT}, 2),
        ("lmwire_http_requests_in_flight", {}, 1),
        ("lmwire_tokens_total", {"model": "mock", "kind": "prompt"}, 6),
        ("lmwire_tokens_total", {"model": "mock", "kind": "completion"}, 6),
        ("lmwire_tokens_total", {"model": "mock", "kind": "cached"}, 2),
        ("lmwire_time_to_first_token_seconds_count", {"model": "mock"}, 2),
        ("lmwire_model_loaded", {"model": "mock"}, 1),
        ("lmwire_model_requests_waiting", {"model": "mock"}, 0),
        ("lmwire_worker_up", {"model": "mock", "replica": "0"}, 1),
        ("lmwire_worker_restarts_total", {"model": "mock", "replica": "0"}, 0),
        ("lmwire_worker_deaths_total", {"model": "mock", "replica": "0"}, 0),
        ("lmwire_worker_requests_active", {"model": "mock"}, 0),
        ("lmwire_worker_requests_queued", {"model": "mock"}, 0),
        ("lmwire_worker_tokens_total", {"model": "mock", "kind": "completion"}, 6),
        ("lmwire_prompt_cache_hits_total", {"model": "mock"}, 1),
        ("lmwire_prompt_cache_misses_total", {"model": "mock"}, 1),
        ("lmwire_prompt_cache_saved_tokens_total", {"model": "mock"}, 2),
    ],
)
def test_the_metrics_cover_requests_tokens_times_queues_caches_and_workers(
    server: Server, name: str, labels: dict[str, str], value: float
) -> None:
    server.wait_for(name, value, **labels)  # a worker that does not answer in time is not up for a moment


def test_the_metrics_have_the_workers_memory_and_age(server: Server, text: str) -> None:
    assert server.figure("lmwire_worker_uptime_seconds", model="mock") > 0
    for kind in ("active", "cache", "peak"):
        assert f'lmwire_worker_memory_bytes{{kind="{kind}",model="mock",replica="0"}}' in text


def test_tokens_of_a_stream_have_times_between_them() -> None:
    """Tokens that come together count as one, and their number depends on the machine."""
    count = "lmwire_inter_token_seconds_count"
    with served("mock", "--worker", f"{MOCK} --token-ms 5") as server:
        with RawClient(server.url) as client:
            client.chat("water", stream=True, max_tokens=1_000_000)  # the stream goes on until the client leaves
            wait_until(lambda: server.figure(count, model="mock") > 0, "no time between tokens was counted")
        server.wait_for("lmwire_worker_requests_active", 0)
        tokens = server.figure("lmwire_worker_tokens_total", kind="completion")
        assert server.figure(count, model="mock") < tokens
        assert server.figure("lmwire_inter_token_seconds_sum", model="mock") > 0


@pytest.mark.slow
def test_a_worker_that_died_and_the_one_in_its_place_are_counted() -> None:
    with served("mock", "--worker", f"{MOCK} --fault crash-mid-stream:after=1") as server:
        for deaths in (1, 2):
            with RawClient(server.url) as client:
                client.chat("three words here")
                assert client.answer().status == 503
            server.wait_for("lmwire_worker_deaths_total", deaths, model="mock")
        assert server.figure("lmwire_worker_restarts_total", model="mock") == 1
        assert server.figure("lmwire_worker_up", model="mock") == 0


def test_a_worker_that_hangs_does_not_hold_it_up() -> None:
    scenario = f"{MOCK} --fault no-hello"
    with served("mock", "--worker", scenario) as server, RawClient(server.url) as client:
        client.chat("hello")
        server.wait_for("lmwire_model_requests_waiting", 1)
        assert server.figure("lmwire_worker_up") == 0


def test_unknown_model_names_do_not_become_labels(server: Server) -> None:
    asked(server.url, "POST", CHAT, chat_body("hello", model="invented"))
    asked(server.url, "GET", "/invented")
    assert "invented" not in asked(server.url, "GET", "/metrics").body.decode()
    assert server.figure("lmwire_http_requests_total", path=CHAT, model="", status="404") == 1
    assert server.figure("lmwire_http_requests_total", path="", status="404") == 1


def test_the_number_of_model_labels_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmwire_http.telemetry.metrics._MAX_MODELS", 2)
    metrics = Metrics()
    for model in "abcd":
        metrics.count_tokens(model, Usage(prompt_tokens=1, cached_tokens=0, completion_tokens=1))
    values = {
        model: metrics.registry.get_sample_value("lmwire_tokens_total", {"model": model, "kind": "prompt"})
        for model in ("a", "b", "c", "d", "other")
    }
    assert values == {"a": 1, "b": 1, "c": None, "d": None, "other": 2}
