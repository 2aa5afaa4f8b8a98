"""Traces: a span for each request reaches a real collector on loopback, and a collector never harms a request."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from lmwire_http.app import ENDPOINTS
from lmwire_http.cli.main import parse
from lmwire_http.telemetry.traces import OPERATIONS, FinishedRequest, Tracer, make_tracer
from support.http.http_server import MOCK, Server, served_process
from support.http.otlp_collector import Collector, collecting, values
from support.http.raw_http import CHAT, RawClient, asked, chat_body
from support.process.worker_process import SECONDS

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SCRIPT = Path(__file__).parents[1] / "scripted_answers.json"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave of OpenTelemetry's variables only the time that the collector has: that of all waits of tests."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", f"{SECONDS:.0f}")


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
def server(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that the standard variables send to the collector, span by span."""
    file = tmp_path_factory.mktemp("traces") / "env"
    variables = [
        f"OTEL_EXPORTER_OTLP_ENDPOINT={collector.url}",
        f"OTEL_EXPORTER_OTLP_TIMEOUT={SECONDS:.0f}",
        "OTEL_BSP_SCHEDULE_DELAY=5",
        "OTEL_SERVICE_NAME=desk",
    ]
    file.write_text("\n".join(variables))
    with served_process("mock", "--worker", f"{MOCK} --scenario {SCRIPT}", "--env-file", str(file)) as server:
        yield server


@pytest.mark.slow
def test_a_whole_answer_has_a_span_with_its_model_tokens_and_times(server: Server, collector: Collector) -> None:
    answer = asked(server.url, "POST", CHAT, chat_body("three words here"))
    span = collector.next()
    found = values(span.attributes)
    usage = answer.json["usage"]
    assert (span.name, span.kind) == (f"POST {CHAT}", Span.SPAN_KIND_SERVER)
    assert found.pop("lmwire.queue_seconds") >= 0
    first_token_s = found.pop("gen_ai.response.time_to_first_chunk")
    assert 0 < first_token_s <= (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
    assert found == {
        "http.request.method": "POST",
        "http.route": CHAT,
        "http.response.status_code": 200,
        "gen_ai.provider.name": "lmwire",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "mock",
        "gen_ai.response.model": "mock",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": usage["prompt_tokens"],
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.output_tokens": usage["completion_tokens"],
        "lmwire.request_id": answer.headers["x-request-id"],
    }
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert not span.parent_span_id
    assert {"service.name": "desk"}.items() <= collector.resource.items()


@pytest.mark.slow
def test_a_streamed_answer_has_one_too(server: Server, collector: Collector) -> None:
    asked(server.url, "POST", CHAT, chat_body("go on and on", stream=True))
    found = values(collector.next().attributes)
    assert found["gen_ai.response.finish_reasons"] == ["length"]
    assert found["gen_ai.usage.output_tokens"] > 0
    assert found["gen_ai.response.time_to_first_chunk"] > 0


@pytest.mark.slow
def test_each_of_several_answers_has_its_finish_reason(server: Server, collector: Collector) -> None:
    asked(server.url, "POST", CHAT, chat_body("two please", n=2))
    assert values(collector.next().attributes)["gen_ai.response.finish_reasons"] == ["stop", "stop"]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_of_the_server_is_an_error_with_its_code(server: Server, collector: Collector, stream: bool) -> None:
    asked(server.url, "POST", CHAT, chat_body("breaks later", stream=stream))
    span = collector.next()
    found = values(span.attributes)
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "engine_error")
    assert (found["error.type"], found["http.response.status_code"]) == ("engine_error", 500)


@pytest.mark.slow
def test_a_mistake_of_the_client_has_a_code_and_is_no_error_of_the_server(server: Server, collector: Collector) -> None:
    answer = asked(server.url, "POST", CHAT, chat_body("hi", model="other"))
    span = collector.next()
    found = values(span.attributes)
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert found["error.type"] == answer.json["error"]["code"]
    assert found["gen_ai.request.model"] == "other"
    assert "gen_ai.response.model" not in found


@pytest.mark.slow
def test_a_client_that_left_is_named(server: Server, collector: Collector) -> None:
    with RawClient(server.url) as client:
        client.chat("wait", stream=True)
        client.read_until(b"data: ")
    assert values(collector.next().attributes)["error.type"] == "client_disconnected"


@pytest.mark.slow
def test_the_trace_of_the_client_goes_on(server: Server, collector: Collector) -> None:
    asked(server.url, "POST", CHAT, chat_body("hi"), traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="desk=1")
    span = collector.next()
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.trace_state) == (TRACE, PARENT, "desk=1")


@pytest.mark.slow
def test_a_trace_that_its_client_does_not_sample_is_not_sent(server: Server, collector: Collector) -> None:
    asked(server.url, "POST", CHAT, chat_body("hi"), traceparent=f"00-{TRACE}-{PARENT}-00")
    answer = asked(server.url, "POST", CHAT, chat_body("hi"))
    assert values(collector.next().attributes)["lmwire.request_id"] == answer.headers["x-request-id"]


@pytest.mark.slow
@pytest.mark.parametrize("header", ["00-zz-zz-01", "x" * 4000, f"ff-{TRACE}-{PARENT}-01"])
def test_an_invalid_trace_starts_a_new_one(server: Server, collector: Collector, header: str) -> None:
    assert asked(server.url, "POST", CHAT, chat_body("hi"), traceparent=header).status == 200
    assert not collector.next().parent_span_id


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/health", "/no-such-path"])
def test_paths_that_need_no_key_have_no_span(server: Server, collector: Collector, path: str) -> None:
    asked(server.url, "GET", path)
    asked(server.url, "GET", "/v1/models")
    assert collector.next().name == "GET /v1/models"


@pytest.mark.slow
def test_spans_contain_neither_prompt_nor_answer(server: Server, collector: Collector) -> None:
    answer = asked(server.url, "POST", CHAT, chat_body("Zanzibar"))
    collector.next()
    assert "Zanzibar" in answer.json["choices"][0]["message"]["content"]
    assert b"Zanzibar" not in b"".join(collector.bodies)


@pytest.mark.slow
def test_the_option_names_the_collector_and_the_last_spans_are_sent_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with collecting() as collector:
        with served_process("mock", "--worker", MOCK, "--otlp-endpoint", f"{collector.url}/otel/") as server:
            answer = asked(server.url, "POST", CHAT, chat_body("hi"))
            assert collector.spans.empty()
        assert values(collector.next().attributes)["lmwire.request_id"] == answer.headers["x-request-id"]
        assert collector.paths == ["/otel/v1/traces"]
        assert collector.resource["service.name"] == "lmwire"


@pytest.mark.slow
def test_a_collector_that_is_down_changes_no_request_and_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nothing listens there, and no other program can
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with served_process("mock", "--worker", MOCK, "--otlp-endpoint", url) as server:
            for stream in (False, True):
                assert asked(server.url, "POST", CHAT, chat_body("hi", stream=stream)).status == 200
            server.wait_for_line("(?i)export.*span")
            assert asked(server.url, "POST", CHAT, chat_body("hi")).status == 200


def test_a_slow_collector_holds_up_nothing_and_spans_beyond_the_queue_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    with collecting() as collector:
        collector.open.clear()
        tracer = Tracer(collector.url, ())
        tracer.record(finished())
        assert collector.reached.wait(SECONDS)
        for _ in range(100):
            tracer.record(finished())
        collector.open.set()
        for _ in range(5):  # the one on its way, and those in the queue
            collector.next()
        tracer.close()
        assert collector.spans.empty()


def test_the_end_waits_for_the_last_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmwire_http.telemetry.traces.FLUSH_S", SECONDS)
    with collecting() as collector:
        collector.open.clear()
        tracer = Tracer(collector.url, ())
        tracer.record(finished())
        closing = threading.Thread(target=tracer.close)
        closing.start()
        assert collector.reached.wait(SECONDS)
        assert closing.is_alive()
        collector.open.set()
        closing.join(SECONDS)
        assert not collector.spans.empty()


def test_a_collector_that_never_answers_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmwire_http.telemetry.traces.FLUSH_S", 0.05)
    with collecting() as collector:
        collector.open.clear()
        tracer = Tracer(collector.url, ())
        tracer.record(finished())
        tracer.close()
        assert [thread for thread in threading.enumerate() if thread.name == "traces"]


def test_texts_of_clients_are_without_keys_bounded_and_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3")
    with collecting() as collector:
        tracer = Tracer(collector.url, ("hidden-key",))
        for model in ("hidden-key", "m" * 1000, "bad\ud800"):
            tracer.record(finished(requested_model=model, method="MADE-UP"))
        spans = [collector.next() for _ in range(3)]
        tracer.close()
    models = [values(span.attributes)["gen_ai.request.model"] for span in spans]
    assert models == ["[API key]", "m" * 256, "bad\\ud800"]
    assert spans[0].name == f"_OTHER {CHAT}"


@pytest.mark.parametrize("off", [{}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}])
def test_without_a_collector_nothing_is_traced(monkeypatch: pytest.MonkeyPatch, off: dict[str, str]) -> None:
    for name, value in ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"} | off if off else {}).items():
        monkeypatch.setenv(name, value)
    assert make_tracer(None, ()) is None


@pytest.mark.slow
def test_without_a_collector_no_library_of_it_is_imported() -> None:
    program = (
        "import sys; from lmwire_http.server import server; from lmwire_http.app import make_app; "
        "from lmwire_http.settings import Settings; make_app(Settings()); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    assert subprocess.check_output([sys.executable, "-P", "-c", program], text=True) == "[]\n"


def test_the_option_without_the_extra_ends_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_library(monkeypatch)
    with pytest.raises(SystemExit) as exit:
        parse(["--otlp-endpoint", "http://127.0.0.1:4318"], {})
    assert exit.value.code == os.EX_USAGE
    assert "install 'lmwire[tracing]'" in capsys.readouterr().err


def test_a_variable_without_the_extra_leaves_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without_library(monkeypatch)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    assert make_tracer(None, ()) is None
    assert "install 'lmwire[tracing]'" in caplog.text


def test_a_wrong_variable_leaves_a_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    assert make_tracer("http://127.0.0.1:4318", ()) is None
    assert "a variable of OpenTelemetry (OTEL_...) is wrong" in caplog.text


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "http://", "http://me:secret@host", "ftp://host", "http://host?x=1"])
def test_a_wrong_address_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--otlp-endpoint", url], {})
    assert "--otlp-endpoint" in (error := capsys.readouterr().err)
    assert "http://127.0.0.1:4318" in error


def test_every_path_with_an_operation_is_one_of_an_endpoint() -> None:
    assert {endpoint.path for endpoint in ENDPOINTS} >= OPERATIONS.keys()


def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no import find the libraries of the extra."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})


def finished(**changes: Any) -> FinishedRequest:
    """A request that ended well, with changes."""
    facts: dict[str, Any] = {
        "id": "req_1",
        "headers": {},
        "method": "POST",
        "path": CHAT,
        "status": 200,
        "error_code": None,
        "seconds": 1.0,
        "queued_s": 0.0,
        "first_token_s": 0.5,
        "requested_model": "mock",
        "model": "mock",
        "prompt_tokens": 1,
        "cached_tokens": 0,
        "completion_tokens": 1,
        "finish_reasons": ["stop"],
    }
    return FinishedRequest(**facts | changes)
