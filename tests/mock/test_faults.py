"""Each fault as a host sees it that reads bytes and knows nothing of faults."""

import json
import os
import select
import signal
import subprocess
from typing import Any

import pytest

from lmwire_protocol.limits import CLIENT_LINE_BYTES
from lmwire_worker.mock.catalogue import FAULTS, choose
from lmwire_worker.mock.faults.pipes import LINE_FAULTS, PIPE_FAULTS
from lmwire_worker.mock.faults.process import PROCESS_FAULTS
from lmwire_worker.mock.faults.replies import RULES
from support.process.mock_host import CONVERSATION, GENERATE, HELLO, LOAD, WorkerOutput, faulty, mock, run_worker
from support.process.worker_process import SECONDS, WorkerProcess
from support.process.worker_thread import MockOnThread, run_on_thread

DEATHS = [("", -signal.SIGKILL), ("signal=ABRT", -signal.SIGABRT), ("exit=0", 0), ("exit=70", 70)]
SHORT = {**GENERATE, "prompt": "a b"}


def converse(*faults: str) -> WorkerOutput:
    """Return what a process writes: its faults end it, or change it as a whole."""
    return run_worker(faulty(*faults), *CONVERSATION)


def converse_on_thread(*faults: str) -> WorkerOutput:
    return run_on_thread(faulty(*faults), *CONVERSATION)


def interactive(*faults: str) -> WorkerProcess:
    return WorkerProcess(command=faulty(*faults))


# The list.


def test_every_fault_in_the_list_is_shown_by_something() -> None:
    assert set(LINE_FAULTS) | set(PIPE_FAULTS) | set(PROCESS_FAULTS) | set(RULES) == set(FAULTS)


@pytest.mark.slow
def test_the_list_is_printed_with_parameters_and_their_defaults() -> None:
    listed = run_worker(mock("--list-faults")).stdout.decode()
    assert [line.split()[0] for line in listed.splitlines() if not line.startswith(" ")] == list(FAULTS)
    assert "after=3, signal=KILL, exit=none" in listed


def test_parameters_are_read() -> None:
    chosen = choose("crash-mid-line:after=5,exit=70")
    assert chosen.parameters == {"after": 5, "signal": "KILL", "exit": 70}
    assert choose("crash-mid-line").parameters == FAULTS["crash-mid-line"].parameters


# Starting.


@pytest.mark.slow
@pytest.mark.parametrize(("death", "returncode"), DEATHS)
def test_the_worker_dies_at_its_start(death: str, returncode: int) -> None:
    output = converse(f"crash-start:{death}" if death else "crash-start")
    assert (output.stdout, output.returncode) == (b"", returncode)
    assert b"dies on purpose" in output.stderr


@pytest.mark.parametrize("size", [100, 70_000])
def test_a_banner_comes_before_its_first_event(size: int) -> None:
    output = converse_on_thread(f"garbage-before-hello:bytes={size}")
    banner, event = output.stdout[:size], output.stdout[size:]
    assert banner.startswith(b"Last login") and banner.endswith(b"\n")
    assert event.startswith(b'{"event":"done","id":"h"')


def test_it_never_answers_hello() -> None:
    output = converse_on_thread("no-hello")
    assert output.of("h") == []
    assert output.text() == "a b c d e"


@pytest.mark.slow
def test_it_speaks_a_newer_version_alone() -> None:
    output = converse("newer-version")
    [refusal] = output.events
    assert (refusal["code"], refusal["protocols"], output.returncode) == ("unsupported_protocol", [2], 76)
    [agreed] = run_worker(faulty("newer-version"), {**HELLO, "protocol": [1, 2]}).events
    assert agreed["protocol"] == 2


def test_it_answers_hello_with_a_version_that_nobody_asked_for() -> None:
    [done] = converse_on_thread("wrong-version").of("h")
    assert (done["event"], done["protocol"]) == ("done", 2)


# Loading.


def test_it_loads_slowly_with_progress_and_can_be_cancelled() -> None:
    with MockOnThread("--fault", "slow-load:seconds=600") as worker:
        worker.send(LOAD)
        worker.wait_for(lambda event: event["event"] == "progress" and event["total"] == 10)
        worker.call({"id": "c", "cmd": "cancel", "target": "l"})
        assert worker.terminal("l")["code"] == "cancelled"


def test_a_slow_load_ends() -> None:
    assert converse_on_thread("slow-load:seconds=1").text() == "a b c d e"


@pytest.mark.parametrize("code", ["bad_model", "out_of_memory"])
def test_the_worker_fails_to_load(code: str) -> None:
    output = converse_on_thread(f"failed-load:code={code}")
    assert output.terminals("l")[0]["code"] == code
    assert output.terminals("g")[0]["code"] == "not_loaded"


# Dying.


@pytest.mark.slow
def test_it_dies_within_a_line() -> None:
    output = converse("crash-mid-line:after=2,exit=70")
    assert (output.text(), output.terminals("g"), output.returncode) == ("a ", [], 70)
    assert output.lines[-1].startswith(b'{"event":"token","id":"g"')
    assert not output.stdout.endswith(b"\n")


@pytest.mark.slow
def test_it_dies_within_an_answer() -> None:
    output = converse("crash-mid-stream")
    assert (output.text(), output.terminals("g"), output.returncode) == ("a b c ", [], -signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["crash-mid-stream", "crash-mid-line"])
def test_it_dies_before_the_terminal_of_an_answer_that_is_too_short(fault: str) -> None:
    output = run_worker(faulty(fault), LOAD, SHORT)
    assert (output.text(), output.terminals("g"), output.returncode) == ("a b", [], -signal.SIGKILL)


@pytest.mark.slow
def test_it_dies_after_the_terminal_of_an_answer() -> None:
    with interactive("crash-after-terminal") as worker:
        worker.load("mock")
        worker.send(GENERATE)
        assert worker.wait_end() == -signal.SIGKILL
        worker.check_terminals(["load", "g"])


# Polluting the stream.


def test_text_stands_between_two_events() -> None:
    output = converse_on_thread("garbage-between-events")
    [at] = [number for number, line in enumerate(output.lines) if not line.startswith(b"{")]
    assert json.loads(output.lines[at - 1])["token"] == "a "
    assert json.loads(output.lines[at + 1])["token"] == "b "


def test_text_without_a_newline_stands_before_an_event() -> None:
    [glued] = [line for line in converse_on_thread("garbage-half-line").lines if not line.startswith(b"{")]
    assert json.loads(glued[glued.index(b"{") :])["token"] == "a "


@pytest.mark.parametrize("size", [10_000, CLIENT_LINE_BYTES, CLIENT_LINE_BYTES + 1])
def test_the_long_line_fault_writes_a_line_of_the_given_length(size: int) -> None:
    output = converse_on_thread(f"long-line:bytes={size}")
    assert max(map(len, output.lines)) == size
    assert output.text() == "a b c d e"


# Flow.


def test_it_answers_with_a_burst_of_tokens() -> None:
    output = converse_on_thread("burst:tokens=5000")
    assert output.text() == "x " * 5000
    assert output.terminals("g")[0]["usage"]["completion_tokens"] == 5000


@pytest.mark.slow
def test_it_stalls_while_ping_is_answered_and_ends_on_sigterm() -> None:
    with interactive("stall") as worker:
        worker.load("mock")
        worker.send(GENERATE)
        worker.wait_for(lambda event: event.get("token") == "3 ")
        worker.call({"id": "c", "cmd": "cancel", "target": "g"})
        assert worker.call({"id": "p", "cmd": "ping"})["state"] == "running"
        assert [event["event"] for event in worker.of("g")] == ["progress", "token", "token", "token"]
        worker.signal(signal.SIGTERM)
        assert worker.wait_end() == 0
        worker.check_terminals(["g"])


@pytest.mark.slow
def test_it_floods_stderr_before_every_terminal() -> None:
    output = converse("stderr-flood:bytes=200000")
    assert 3 * 199_000 < len(output.stderr) < 3 * 201_000
    assert output.text() == "a b c d e"


# Not ending.


def test_a_worker_that_ignores_quit_serves_on_and_ends_with_its_input() -> None:
    quits = [{"id": "q", "cmd": "quit"}, {"id": "q", "cmd": "quit", "drain": True}]
    output = run_on_thread(faulty("ignore-quit"), LOAD, *quits, GENERATE)
    assert (output.text(), output.terminals("q"), output.returncode) == ("a b c d e", [], 0)


@pytest.mark.slow
def test_a_worker_that_ignores_the_end_of_its_input_ends_on_sigterm() -> None:
    with interactive("ignore-eof") as worker:
        worker.load("mock")
        worker.send({"id": "q", "cmd": "quit"}, SHORT)
        worker.close_stdin()
        worker.terminal("g")
        assert worker.of("q") == []
        still_there(worker)
        worker.signal(signal.SIGTERM)
        assert worker.wait_end() == 0


@pytest.mark.slow
def test_a_worker_that_ignores_signals_ends_only_on_sigkill() -> None:
    with interactive("ignore-sigterm") as worker:
        worker.send({"id": "q", "cmd": "quit"})
        worker.load("mock")
        for number in (signal.SIGTERM, signal.SIGHUP):
            worker.signal(number)
        worker.call(HELLO)
        assert worker.of("q") == []
        worker.close_stdin()
        still_there(worker)
        worker.signal(signal.SIGKILL)
        assert worker.wait_end() == -signal.SIGKILL


def still_there(worker: WorkerProcess) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(0.5)  # the span over which it is seen to stay; a worker that obeys is gone in a tenth


@pytest.mark.slow
def test_a_grandchild_holds_its_pipes_open_after_it() -> None:
    command = faulty("grandchild", "crash-mid-stream")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as worker:
        assert worker.stdin and worker.stdout
        worker.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in CONVERSATION))
        worker.stdin.flush()
        assert worker.wait(SECONDS) == -signal.SIGKILL
        said = os.read(worker.stdout.fileno(), 1 << 16)
        assert b'"token":"c "' in said
        ended, _, _ = select.select([worker.stdout], [], [], 0.3)  # the span over which no end is seen to come
        assert not ended
        worker.stdin.write(b"nobody reads this, and nobody says so\n")
        worker.stdin.flush()
        os.killpg(worker.pid, signal.SIGKILL)
        assert worker.stdout.read() == b""


# Against the order, and beyond this version.


def test_the_terminal_comes_twice() -> None:
    output = converse_on_thread("duplicate-terminal")
    first, second = output.terminals("g")
    assert first == second
    assert len(output.terminals("l")) == 1


def test_a_token_comes_after_the_terminal() -> None:
    assert [event["event"] for event in converse_on_thread("event-after-terminal").of("g")][-2:] == ["done", "token"]


def test_events_come_for_an_id_that_nobody_sent() -> None:
    output = converse_on_thread("unknown-id")
    strange = [event for event in output.events if event["id"] not in ("h", "l", "g")]
    assert [event["event"] for event in strange] == ["token", "done"]
    assert output.text() == "a b c d e"


def test_events_of_an_unknown_kind_come() -> None:
    output = converse_on_thread("unknown-event")
    strange = [event for event in output.events if event["event"] == "weather"]
    assert [event.get("id") for event in strange] == ["g", None]
    assert output.text() == "a b c d e"


def test_every_event_and_the_objects_in_it_have_unknown_fields() -> None:
    output = converse_on_thread("unknown-fields")
    assert all("moon_phase" in event for event in output.events)
    assert all("moon_phase" in output.terminals("g")[0][name] for name in ("usage", "timings"))
    assert "moon_phase" in output.terminals("h")[0]["limits"]
    assert output.text() == "a b c d e"


def test_values_come_that_are_in_no_list() -> None:
    thinking = {"id": "t", "cmd": "chat", "messages": [{"role": "user", "content": "a"}], "reasoning": "on", "n": 2}
    others = [thinking, {"id": "p", "cmd": "ping"}, {**LOAD, "id": "x", "path": "x"}]
    output = run_on_thread(faulty("unknown-values"), *CONVERSATION, *others)
    seen: dict[str, set[Any]] = {}
    for event in output.events:
        for name in ("finish_reason", "code", "stage", "unit", "state", "channel"):
            seen.setdefault(name, set()).add(event.get(name))
    assert all(len(values - {None}) == 1 for values in seen.values()), seen
    assert output.terminals("g")[0]["finish_reason"] == "daydreaming"
    assert [choice["finish_reason"] for choice in output.terminals("t")[0]["choices"]] == ["daydreaming"] * 2


@pytest.mark.slow
def test_faults_go_together() -> None:
    output = converse("unknown-fields", "duplicate-terminal", "crash-after-terminal:exit=3", "unknown-event")
    assert output.returncode == 3
    assert any(event["event"] == "weather" for event in output.events)
    assert all("moon_phase" in event for event in output.events if event["event"] != "weather")
