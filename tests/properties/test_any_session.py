"""The universal rules hold whatever the commands and their chunks: on a thread, and until a signal ends a process."""

import contextlib
import signal
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.process.worker_process import Event, WorkerProcess
from support.process.worker_thread import MockOnThread
from support.protocol.universal_rules import check_session

pytestmark = pytest.mark.slow

IDS = st.sampled_from("abcdefgh")
PATHS = st.sampled_from(["mock", "mock", "mock:step_ms=1", "mock:load_steps=5,step_ms=1", "nowhere"])
TOKENS = st.sampled_from([0, 1, 3, 50, 400])


def command(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    return st.fixed_dictionaries({"id": IDS, "cmd": st.just(name), **fields})


GENERATE = command("generate", prompt=st.sampled_from(["a b", "w " * 2000]), max_tokens=TOKENS)
COMMANDS = st.one_of(
    GENERATE,
    GENERATE,
    command("load", path=PATHS),
    command("cancel", target=IDS),
    command("cancel", all=st.just(True)),
    *(command(name) for name in ("hello", "ping", "stats", "info", "unload", "sing")),
)
SESSIONS = st.lists(COMMANDS, max_size=80).map(lambda commands: [{"id": "l", "cmd": "load", "path": "mock"}, *commands])
QUITS = st.lists(st.fixed_dictionaries({"cmd": st.just("quit"), "drain": st.booleans()}), min_size=1, max_size=3)
CUTS = st.lists(st.floats(0, 1), max_size=6).map(sorted)


def write_in_chunks(worker: WorkerProcess, commands: Sequence[Event], cuts: Sequence[float]) -> None:
    stream = b"".join(msgspec.json.encode(command) + b"\n" for command in commands)
    for start, end in pairwise([0, *(int(cut * len(stream)) for cut in cuts), len(stream)]):
        worker.write(stream[start:end])


@settings(max_examples=20)
@given(SESSIONS, CUTS)
def test_a_session_that_ends_with_its_input_answers_everything(commands: list[Event], cuts: list[float]) -> None:
    with MockOnThread() as worker:
        write_in_chunks(worker, commands, cuts)
        worker.close_stdin()
        assert worker.wait_end() == 0
        check_session(commands, worker.events)


@settings(max_examples=20)
@given(SESSIONS, QUITS, st.lists(COMMANDS, max_size=10), CUTS)
def test_a_session_that_quits_answers_everything_until_then(
    before: list[Event], quits: list[Event], after: list[Event], cuts: list[float]
) -> None:
    commands = [*before, *({"id": f"quit {n}", **quit} for n, quit in enumerate(quits)), *after]
    with MockOnThread() as worker:
        with contextlib.suppress(BrokenPipeError):  # it may exit before it has read everything
            write_in_chunks(worker, commands, cuts)
        assert worker.wait_end() == 0
        check_session(commands, worker.events, ending=len(before) + 1)


@settings(max_examples=10)
@given(SESSIONS, st.sampled_from([signal.SIGTERM, signal.SIGHUP]))
def test_a_session_that_a_signal_ends_answers_everything_that_was_read(
    commands: list[Event], number: signal.Signals
) -> None:
    commands = [*commands, {"id": "fence", "cmd": "ping"}]
    with WorkerProcess("--mock") as worker:
        write_in_chunks(worker, commands, [])
        worker.terminal("fence")
        worker.signal(number)
        assert worker.wait_end() == 0
        check_session(commands, worker.events, ending=len(commands))
