"""Every way in which a worker ends: what is still answered, how soon it is gone, with which exit code."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import support
from support.process.process_waits import GONE_SECONDS, wait_gone, watch
from support.process.worker_process import SECONDS, WorkerProcess

pytestmark = pytest.mark.slow

RELAY = str(Path(support.__file__).parent / "process/relay_host.py")
ENDLESS = {"cmd": "generate", "prompt": "a b", "max_tokens": 1_000_000}

LONG_STEP = "mock:step_ms=60000"
"""A model whose step, like a long evaluation, cannot be interrupted."""


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess("--mock") as worker:
        yield worker


def put_to_work(worker: WorkerProcess, state: str) -> None:
    """Bring a worker into a state."""
    if state == "loading":
        worker.send({"id": "work", "cmd": "load", "path": "mock:load_steps=100000,step_ms=1"})
        worker.wait_for(lambda event: event["event"] == "progress")
    elif state == "decoding":
        worker.load("mock:step_ms=20")  # a pipe holds what comes while a slow test does not read
        worker.send({"id": "work", **ENDLESS})
        worker.first_token("work")
    elif state == "inside a step":
        worker.send({"id": "work", "cmd": "load", "path": LONG_STEP})
        worker.wait_for(lambda event: event["event"] == "progress")
    else:
        worker.call({"id": "idle", "cmd": "hello"})


STATES = ["idle", "loading", "decoding", "inside a step"]


def test_the_end_of_stdin_lets_accepted_work_finish_and_exits_0(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    worker.send({"id": "a", "cmd": "generate", "prompt": "a b", "max_tokens": 100}, {"id": "b", "cmd": "info"})
    worker.close_stdin()
    assert worker.wait_end() == 0
    assert worker.terminal("a")["usage"]["completion_tokens"] == 100
    worker.check_terminals(["a", "b"])


def test_no_input_at_all_exits_0_without_a_word(worker: WorkerProcess) -> None:
    worker.close_stdin()
    assert worker.wait_end() == 0
    assert worker.lines == []


@pytest.mark.parametrize("state", STATES)
def test_quit_ends_what_runs_and_its_done_is_the_last_line(worker: WorkerProcess, state: str) -> None:
    put_to_work(worker, state)
    assert worker.quit() == 0
    assert worker.events[-1] == {"event": "done", "id": "the-quit", "cmd": "quit"}
    if state != "idle":
        worker.check_terminals(["work"])


def test_quit_with_drain_lets_work_finish_and_takes_no_more(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    worker.send(
        {"id": "a", "cmd": "generate", "prompt": "a b", "max_tokens": 200},
        {"id": "q", "cmd": "quit", "drain": True},
        {"id": "late", "cmd": "info"},
        {"id": "p", "cmd": "ping"},
    )
    assert worker.wait_end() == 0
    assert worker.terminal("a")["usage"]["completion_tokens"] == 200
    assert worker.terminal("late")["code"] == "draining"
    assert worker.terminal("p")["state"] == "draining"
    assert worker.events[-1]["id"] == "q"


def test_a_second_quit_without_drain_escalates(worker: WorkerProcess) -> None:
    worker.load("mock:step_ms=1")
    worker.send({"id": "a", **ENDLESS}, {"id": "q1", "cmd": "quit", "drain": True})
    worker.first_token("a")
    worker.send({"id": "q2", "cmd": "quit"})
    assert worker.wait_end() == 0
    assert worker.terminal("a")["finish_reason"] == "cancelled"
    assert {event["id"] for event in worker.events[-2:]} == {"q1", "q2"}


@pytest.mark.parametrize(
    ("state", "number"), [*((state, signal.SIGTERM) for state in STATES), ("decoding", signal.SIGHUP)]
)
def test_a_signal_ends_what_runs_with_its_terminals_and_exits_0(
    worker: WorkerProcess, state: str, number: signal.Signals
) -> None:
    put_to_work(worker, state)
    worker.signal(number)
    assert worker.process.wait(GONE_SECONDS) == 0
    worker.wait_end()
    if state != "idle":
        worker.check_terminals(["work"])


def test_sigterm_does_not_wait_for_a_host_that_does_not_read() -> None:
    with WorkerProcess("--mock", read=False) as worker:
        worker.send({"id": "l", "cmd": "load", "path": "mock"}, {"id": "g", **ENDLESS})
        worker.stdout.read(1)
        worker.signal(signal.SIGTERM)
        assert worker.process.wait(GONE_SECONDS) == 0


def test_sigint_is_ignored_when_stdin_is_no_terminal(worker: WorkerProcess) -> None:
    worker.load("mock")
    worker.signal(signal.SIGINT)
    worker.call({"id": "g", "cmd": "generate", "prompt": "still here"})
    assert worker.text("g") == "still here"


@pytest.mark.parametrize("state", STATES)
def test_a_host_that_closes_the_output_ends_the_worker_with_74(state: str) -> None:
    with WorkerProcess("--mock", read=False) as worker:
        commands = {
            "idle": [],
            "loading": [{"id": "l", "cmd": "load", "path": "mock:load_steps=100000,step_ms=1"}],
            "decoding": [{"id": "l", "cmd": "load", "path": "mock:step_ms=1"}, {"id": "g", **ENDLESS}],
            "inside a step": [{"id": "l", "cmd": "load", "path": LONG_STEP}],
        }[state]
        worker.send(*commands, {"id": "p", "cmd": "ping"})
        assert worker.stdout.read(1) == b"{"
        worker.stdout.close()
        assert worker.process.wait(GONE_SECONDS) == 74


def test_a_host_that_is_killed_inside_a_step_takes_the_worker_with_it() -> None:
    """tests/faults/test_host_deaths.py has the other states."""
    with WorkerProcess(command=[sys.executable, RELAY, "--mock"]) as host:
        pid = host.call({"id": "h", "cmd": "hello"})["pid"]
        put_to_work(host, "inside a step")
        watched = watch(pid)
        host.process.kill()
        wait_gone(watched)


def test_a_host_named_by_its_pid_takes_the_worker_with_it_even_when_the_pipes_stay_open() -> None:
    launcher = "import subprocess, sys; subprocess.run([sys.executable, '-P', '-m', 'lmwire_worker', '--mock'])"
    with WorkerProcess(command=[sys.executable, "-c", launcher]) as worker:
        done = worker.call({"id": "h", "cmd": "hello", "host_pid": worker.process.pid})
        watched = watch(done["pid"])
        worker.process.kill()
        wait_gone(watched)


def test_an_unknown_argument_exits_64() -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-m", "lmwire_worker", "--sing"], capture_output=True, check=False, timeout=SECONDS
    )
    assert run.returncode == 64
    assert run.stdout == b""
    assert b"--sing" in run.stderr


def test_a_bug_in_the_engine_ends_every_request_as_internal_and_exits_70(tmp_path: Path) -> None:
    script = tmp_path / "worker_with_a_bug.py"
    script.write_text(
        "from lmwire_worker import mock\n"
        "from lmwire_worker.__main__ import main\n"
        "def step(self):\n"
        "    if len(self._held) == 2: raise ZeroDivisionError('a bug')\n"
        "    return []\n"
        "mock.MockRunner.step = step\n"
        "main(['--mock'])\n"
    )
    with WorkerProcess(command=[sys.executable, str(script)]) as worker:
        worker.load("mock")
        worker.send({"id": "a", **ENDLESS}, {"id": "b", **ENDLESS}, {"id": "q", "cmd": "quit", "drain": True})
        assert worker.wait_end() == 70
        assert worker.terminal("a")["code"] == worker.terminal("b")["code"] == "internal"
        worker.check_terminals(["a", "b"])
        assert b"ZeroDivisionError: a bug" in worker.stderr


def test_an_exception_of_the_runner_over_one_request_ends_that_request_alone(tmp_path: Path) -> None:
    script = tmp_path / "worker_with_a_stumbling_runner.py"
    script.write_text(
        "from lmwire_worker.mock.runner import MockRunner\n"
        "from lmwire_worker.__main__ import main\n"
        "add = MockRunner.add\n"
        "def stumble(self, key, request, seed, **rest):\n"
        "    if request.prompt == 'boom': raise ValueError('a tokenizer in trouble')\n"
        "    return add(self, key, request, seed, **rest)\n"
        "MockRunner.add = stumble\n"
        "main(['--mock'])\n"
    )
    with WorkerProcess(command=[sys.executable, str(script)]) as worker:
        worker.load("mock:step_ms=1")
        worker.send({"id": "well", "cmd": "generate", "prompt": "a b", "max_tokens": 100})
        error = worker.call({"id": "bad", "cmd": "generate", "prompt": "boom"})
        assert error["code"] == "engine_error"
        assert "a tokenizer in trouble" in error["error"]
        assert worker.terminal("well")["usage"]["completion_tokens"] == 100
        assert worker.quit() == 0
        assert b"ValueError" in worker.stderr


@pytest.mark.parametrize("arguments", [(), ("--mock",)], ids=["worker", "mock"])
def test_a_worker_can_lead_a_process_group(arguments: tuple[str, ...]) -> None:
    turned_off = (*arguments, "--process-group", "--no-process-group")
    with WorkerProcess(*turned_off) as member, WorkerProcess(*arguments, "--process-group") as leader:
        for worker in (member, leader):
            assert worker.call({"id": "h", "cmd": "hello"})["event"] == "done"
        assert os.getpgid(member.process.pid) == os.getpgrp()
        assert os.getpgid(leader.process.pid) == leader.process.pid
        os.killpg(leader.process.pid, signal.SIGTERM)
        assert leader.process.wait(SECONDS) == 0
        assert member.call({"id": "p", "cmd": "ping"})["event"] == "done"
