"""Requests, ids, order and bad input, on a worker whose engine needs no model.

Most run it on a thread. A process reads a few of them, since its reader's thread is code of its own.
"""

from collections.abc import Iterator

import pytest

from lmwire_protocol import FEATURES
from support.process.worker_process import WorkerProcess
from support.process.worker_thread import MockOnThread

pytestmark = pytest.mark.slow

ENDLESS = {"cmd": "generate", "prompt": "a b", "max_tokens": 1_000_000}
"""A request that runs for a quarter of an hour, with a step of 1 ms."""


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with MockOnThread() as worker:
        yield worker


@pytest.fixture
def process() -> Iterator[WorkerProcess]:
    with WorkerProcess("--mock") as process:
        yield process


def test_hello_describes_the_worker(process: WorkerProcess) -> None:
    done = process.call({"id": "h", "cmd": "hello", "protocol": [1, 3], "client": "a test"})
    assert done["protocol"] == 1
    assert done["pid"] == process.process.pid
    assert done["engines"] == ["mock"]
    assert set(done["features"]) <= set(FEATURES)
    assert {"tokenize", "chat.tools"} <= set(done["features"])
    assert done["limits"] == {
        "line_in_bytes": 33554432,
        "line_out_bytes": 61440,
        "requests": 1024,
        "queued_bytes": 268435456,
    }


def test_nothing_is_written_before_the_first_request(worker: WorkerProcess) -> None:
    worker.write(b"\n  \r\n\n")
    worker.call({"id": "p", "cmd": "ping"})
    assert worker.events[0]["id"] == "p"


def test_a_hello_without_a_common_version_ends_the_worker_with_76(process: WorkerProcess) -> None:
    process.send({"id": "h", "cmd": "hello", "protocol": [2, 4]}, {"id": "p", "cmd": "ping"})
    assert process.wait_end() == 76
    assert len(process.events) == 1
    assert process.events[0]["code"] == "unsupported_protocol"
    assert process.events[0]["protocols"] == [1]


def test_a_model_is_loaded_described_used_and_dropped(worker: WorkerProcess) -> None:
    loaded = worker.load("mock")
    assert worker.call({"id": "i", "cmd": "info"}) == {**loaded, "id": "i", "cmd": "info"}
    done = worker.call({"id": "g", "cmd": "generate", "prompt": "one two three"})
    assert worker.text("g") == "one two three"
    assert done["finish_reason"] == "stop"
    assert done["usage"] == {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 3}
    assert set(done["timings"]) >= {"queued_ms", "prefill_ms", "first_token_ms", "total_ms"}
    assert worker.call({"id": "u", "cmd": "unload"})["freed_bytes"] == 0
    assert worker.call({"id": "i2", "cmd": "info"})["code"] == "not_loaded"
    assert worker.call({"id": "g2", "cmd": "generate", "prompt": "x"})["code"] == "not_loaded"
    assert worker.call({"id": "u2", "cmd": "unload"})["freed_bytes"] == 0


def test_the_answer_of_info_does_not_wait_for_a_generation(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    worker.send({"id": "long", **ENDLESS})
    worker.first_token("long")
    assert worker.call({"id": "i", "cmd": "info"})["model_type"] == "mock"
    assert worker.of("long")[-1]["event"] == "token"


def test_many_requests_interleave_and_each_keeps_its_order(worker: WorkerProcess) -> None:
    worker.load("mock")
    prompts = {f"r{i}": " ".join(f"w{i}.{j}" for j in range(20)) for i in range(100)}
    worker.send(*({"id": id, "cmd": "generate", "prompt": prompt} for id, prompt in prompts.items()))
    for id, prompt in prompts.items():
        worker.terminal(id)
        assert worker.text(id) == prompt
    worker.check_terminals(prompts)


def test_a_load_waits_for_earlier_requests_and_holds_up_later_ones(worker: WorkerProcess) -> None:
    worker.load("mock")
    worker.send(
        {"id": "before", "cmd": "generate", "prompt": "a b c"},
        {"id": "swap", "cmd": "load", "path": "mock:step_ms=0"},
        {"id": "after", "cmd": "info"},
    )
    assert worker.terminal("after")["path"] == "mock:step_ms=0"
    order = [event["id"] for event in worker.events if event["event"] == "done"]
    assert order == ["load", "before", "swap", "after"]


def test_a_failed_load_says_whether_the_model_of_before_is_still_there(worker: WorkerProcess) -> None:
    error = worker.call({"id": "bad", "cmd": "load", "path": "nowhere"})
    assert (error["code"], error["field"], error["loaded"]) == ("model_not_found", "path", False)
    worker.load("mock")
    worker.send(
        {"id": "bad2", "cmd": "load", "path": "nowhere"}, {"id": "g", "cmd": "generate", "prompt": "still here"}
    )
    assert worker.terminal("bad2")["loaded"] is True
    assert worker.terminal("g")["event"] == "done"


def test_max_tokens_0_only_processes_the_prompt(worker: WorkerProcess) -> None:
    worker.load("mock")
    done = worker.call({"id": "g", "cmd": "generate", "prompt": "a b", "max_tokens": 0})
    assert done["finish_reason"] == "length"
    assert done["usage"]["completion_tokens"] == 0
    assert worker.token_ids("g") == []


def test_the_seed_is_the_requests_own_or_a_reported_random_one(worker: WorkerProcess) -> None:
    worker.load("mock")
    assert worker.call({"id": "a", "cmd": "generate", "prompt": "x", "seed": 7})["seed"] == 7
    seeds = {worker.call({"id": f"b{i}", "cmd": "generate", "prompt": "x"})["seed"] for i in range(5)}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**53 for seed in seeds)


def test_ping_reports_the_state(worker: WorkerProcess) -> None:
    idle = worker.call({"id": "p1", "cmd": "ping"})
    assert (idle["state"], idle["active"], idle["queued"]) == ("idle", 0, 0)
    assert "step_age_ms" not in idle
    worker.send({"id": "l", "cmd": "load", "path": "mock:load_steps=100000,step_ms=1"}, {"id": "i", "cmd": "info"})
    worker.wait_for(lambda event: event["event"] == "progress")
    loading = worker.call({"id": "p2", "cmd": "ping"})
    assert (loading["state"], loading["active"], loading["queued"]) == ("loading", 1, 1)
    assert loading["step_age_ms"] >= 0
    worker.call({"id": "c", "cmd": "cancel", "all": True})
    worker.terminal("l")
    worker.load("mock:step_ms=1")
    worker.send({"id": "g", **ENDLESS})
    worker.first_token("g")
    assert worker.call({"id": "p3", "cmd": "ping"})["state"] == "running"
    worker.send({"id": "q", "cmd": "quit", "drain": True})
    assert worker.call({"id": "p4", "cmd": "ping"})["state"] == "draining"


def test_stats_counts_what_happened(worker: WorkerProcess) -> None:
    worker.load("mock")
    worker.call({"id": "g", "cmd": "generate", "prompt": "a b c"})
    worker.call({"id": "bad", "cmd": "load", "path": "nowhere"})
    worker.send({"id": "x", **ENDLESS}, {"id": "c", "cmd": "cancel", "target": "x"})
    worker.terminal("x")
    stats = worker.call({"id": "s", "cmd": "stats"})
    assert stats["requests"] == {"accepted": 4, "active": 0, "queued": 0, "done": 2, "errors": 1, "cancelled": 1}
    assert stats["tokens"]["prompt"] >= 3
    assert stats["tokens"]["completion"] >= 3
    assert stats["uptime_ms"] > 0


def test_an_id_in_flight_cannot_be_used_again_and_its_request_goes_on(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    worker.send({"id": "g", **ENDLESS}, {"id": "g", "cmd": "ping"})
    error = worker.wait_for(lambda event: event["event"] == "error")
    assert (error["code"], error["bad_id"]) == ("duplicate_id", "g")
    assert "id" not in error
    assert worker.call({"id": "c", "cmd": "cancel", "target": "g"})["matched"] == 1
    assert worker.terminal("g")["finish_reason"] == "cancelled"
    assert worker.call({"id": "g", "cmd": "ping"})["event"] == "done"


@pytest.mark.parametrize("line", [b'{"id":"g" oops', b'{"id":"g","cmd":"nope"}', b'{"id":"g","cmd":"ping","x":1}'])
def test_a_bad_line_with_an_id_in_flight_names_the_id_and_does_not_end_it(worker: WorkerProcess, line: bytes) -> None:
    worker.load("mock:step_ms=1")
    worker.send({"id": "g", **ENDLESS})
    worker.write(line + b"\n")
    error = worker.wait_for(lambda event: event["event"] == "error")
    assert error["bad_id"] == "g"
    assert "id" not in error
    assert worker.call({"id": "c", "cmd": "cancel", "target": "g"})["matched"] == 1
    assert worker.terminal("g")["finish_reason"] == "cancelled"


def test_more_requests_than_the_limit_are_refused_as_busy(worker: WorkerProcess) -> None:
    worker.send({"id": "l", "cmd": "load", "path": "mock:load_steps=100000,step_ms=1"})
    worker.send(*({"id": f"r{i}", "cmd": "info"} for i in range(1024)))
    busy = worker.terminal("r1023")
    assert (busy["code"], busy["retryable"]) == ("busy", True)
    worker.call({"id": "c", "cmd": "cancel", "all": True})
    worker.terminal("l")
    worker.check_terminals(["l", *(f"r{i}" for i in range(1024))])
    assert worker.call({"id": "again", "cmd": "info"})["code"] == "not_loaded"


def _nested(depth: int) -> bytes:
    return b'{"id":"bad","cmd":"ping","x":' + b"[" * depth + b"]" * depth + b"}"


BAD_LINES = {
    "not JSON": (b'{"id":"bad","cmd":', "parse_error", None),
    "not an object": (b'["id","bad"]', "parse_error", None),
    "a number": (b"42", "parse_error", None),
    "wrong type": (b'{"id":"bad","cmd":"generate","prompt":5}', "invalid_request", "prompt"),
    "missing field": (b'{"id":"bad","cmd":"generate"}', "invalid_request", "prompt"),
    "unknown command": (b'{"id":"bad","cmd":"sing"}', "unknown_command", "cmd"),
    "a command of a later version": (b'{"id":"bad","cmd":"translate","input":["x"]}', "unknown_command", "cmd"),
    "missing command": (b'{"id":"bad"}', "invalid_request", "cmd"),
    "unknown field": (b'{"id":"bad","cmd":"ping","pong":1}', "invalid_request", "pong"),
    "out of range": (b'{"id":"bad","cmd":"generate","prompt":"x","temperature":-1}', "invalid_request", "temperature"),
    "NaN": (b'{"id":"bad","cmd":"generate","prompt":"x","temperature":NaN}', "parse_error", None),
    "infinity": (b'{"id":"bad","cmd":"generate","prompt":"x","temperature":1e999}', "parse_error", None),
    "nesting 10,000 deep": (_nested(10_000), "parse_error", None),
    "nesting 100 deep, which is read": (_nested(97), "invalid_request", "x"),
    "invalid UTF-8": (b'{"id":"bad","cmd":"generate","prompt":"\xff"}', "parse_error", None),
    "a lone surrogate": (b'{"id":"bad","cmd":"generate","prompt":"\\ud800"}', "parse_error", "prompt"),
    "a byte order mark": (b'\xef\xbb\xbf{"id":"bad","cmd":"ping"}', "parse_error", None),
    "an id that is no string": (b'{"id":5,"cmd":"ping"}', "invalid_request", "id"),
    "an empty id": (b'{"id":"","cmd":"ping"}', "invalid_request", "id"),
    "an id of 129 bytes": (b'{"id":"' + b"x" * 129 + b'","cmd":"ping"}', "invalid_request", "id"),
    "no id": (b'{"cmd":"ping"}', "invalid_request", "id"),
    "cancel of nothing": (b'{"id":"bad","cmd":"cancel"}', "invalid_request", "target"),
    "a process that is no ancestor": (
        b'{"id":"bad","cmd":"hello","host_pid":999999999}',
        "invalid_request",
        "host_pid",
    ),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_gets_its_error_and_the_next_good_one_works(worker: WorkerProcess, name: str) -> None:
    line, code, field = BAD_LINES[name]
    worker.send({"id": "first", "cmd": "ping"})
    worker.write(line + b"\n")
    worker.send({"id": "next", "cmd": "ping"})
    assert worker.terminal("next")["event"] == "done"
    (error,) = [event for event in worker.events if event["event"] == "error"]
    assert (error["code"], error.get("field")) == (code, field)
    recoverable = line.startswith(b'{"id":"bad"')
    assert error.get("id") == ("bad" if recoverable else None)
    assert len(error["error"]) > 10


def test_crlf_and_a_last_line_without_newline_are_read(process: WorkerProcess) -> None:
    process.write(b'{"id":"a","cmd":"ping"}\r\n\r\n{"id":"b","cmd":"ping"}')
    assert process.terminal("a")["event"] == "done"
    process.close_stdin()
    assert process.wait_end() == 0
    process.check_terminals(["a", "b"])


def test_a_line_of_40_mib_is_refused_and_the_next_one_works(process: WorkerProcess) -> None:
    process.write(b'{"id":"big","cmd":"generate","prompt":"' + b"x" * (40 << 20) + b'"}\n{"id":"next","cmd":"ping"}\n')
    assert process.terminal("next")["event"] == "done"
    error = process.terminal("big")
    assert (error["code"], error["retryable"]) == ("line_too_long", False)


def test_a_line_of_the_greatest_length_is_served(worker: WorkerProcess) -> None:
    worker.load("mock")
    head, tail = b'{"id":"big","cmd":"generate","max_tokens":0,"prompt":"', b'"}'
    worker.write(head + b"x" * ((32 << 20) - len(head) - len(tail)) + tail + b"\n")
    assert worker.terminal("big")["event"] == "done"


def test_an_error_repeats_no_more_of_a_field_than_fits_a_line(worker: WorkerProcess) -> None:
    worker.send({"id": "a", "cmd": "ping", "\u0001" * 100_000: 1})
    assert worker.terminal("a")["code"] == "invalid_request"
    assert len(worker.lines[0]) < 61_440


def test_separators_that_split_strings_elsewhere_are_escaped(worker: WorkerProcess) -> None:
    worker.load("mock")
    prompt = "a\u2028b\u2029c\u0085d"
    worker.call({"id": "g", "cmd": "generate", "prompt": prompt})
    assert worker.text("g") == prompt
    raw = b"\n".join(worker.lines)
    assert not any(separator.encode() in raw for separator in "\u2028\u2029\u0085")
