"""Too much of everything: signals, cancels, ids, loads, bytes in both directions; and too few descriptors.

For each commit run the storm of all signals, which ends in the middle of everything, and what needs no real model. The
other storms run at night.
"""

import itertools
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from random_model import write_model
from support.http.http_server import wait_until
from support.process.process_waits import GONE_SECONDS, wait_for_pause
from support.process.worker_process import SECONDS, Event, WorkerProcess
from support.protocol.universal_rules import check_session

pytestmark = pytest.mark.slow

CONTEXT = 65_536
ENDLESS = {"cmd": "generate", "prompt": "a sea", "max_tokens": CONTEXT - 100}
ANSWER = {"cmd": "generate", "prompt": "a sea", "max_tokens": 60, "temperature": 1.0, "seed": 3}
ENDING = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "qwen3", end_scale=0, max_position_embeddings=CONTEXT)


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess() as worker:
        yield worker


# Signals.


@pytest.mark.nightly
def test_a_storm_of_sigint_changes_nothing_from_first_to_last(worker: WorkerProcess, model: Path) -> None:
    worker.call({"id": "h", "cmd": "hello"})
    over = threading.Event()

    def storm() -> None:
        while not over.wait(0.002):
            worker.signal(signal.SIGINT)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        worker.load(model)
        worker.call({"id": "in the storm", **ANSWER})
    finally:
        over.set()
        thread.join()
    worker.call({"id": "after it", **ANSWER})
    assert worker.token_ids("in the storm") == worker.token_ids("after it")
    assert worker.quit() == 0


def test_a_storm_of_all_signals_ends_every_request_once(worker: WorkerProcess, model: Path) -> None:
    worker.load(model)
    commands: list[Event] = [{"id": f"g{i}", **ENDLESS} for i in range(40)]
    worker.send(*commands)
    worker.first_token("g0")
    storm = random.Random(1).choices([*ENDING, signal.SIGINT], k=200)
    for number in storm:
        worker.signal(number)  # a process that is not reaped takes signals even when it has ended
    assert worker.process.wait(GONE_SECONDS) == 0
    worker.wait_end()
    check_session([{"id": "load", "cmd": "load"}, *commands], worker.events, ending=len(commands) + 1)
    assert all(worker.terminal(command["id"])["finish_reason"] == "cancelled" for command in commands)


@pytest.mark.parametrize("path", ["mock:step_ms=1", "mock:step_ms=60000"], ids=["short steps", "inside a step"])
def test_two_quits_with_signals_in_between(path: str) -> None:
    commands: list[Event] = [
        {"id": "l", "cmd": "load", "path": path},
        {"id": "g", "cmd": "generate", "prompt": "a b", "max_tokens": 10**6},
        {"id": "q1", "cmd": "quit", "drain": True},
        {"id": "p1", "cmd": "ping"},
    ]
    with WorkerProcess("--mock") as worker:
        worker.send(*commands)
        assert worker.terminal("p1")["state"] == "draining"
        worker.signal(signal.SIGTERM)
        with suppress(BrokenPipeError):  # it has left already
            worker.send({"id": "q2", "cmd": "quit"}, {"id": "q1", "cmd": "ping"})
        worker.signal(signal.SIGHUP)
        assert worker.process.wait(GONE_SECONDS) == 0
        worker.wait_end()
        late: list[Event] = [{"id": "q2", "cmd": "quit"}, {"id": "q1", "cmd": "ping"}]
        check_session([*commands, *late], worker.events, ending=len(commands))


# Cancels, ids, loads.


@pytest.mark.nightly
def test_a_storm_of_cancels_while_loading_leaves_a_worker_that_loads(worker: WorkerProcess, model: Path) -> None:
    rng = random.Random(2)
    commands: list[Event] = [{"id": "h", "cmd": "hello"}]
    for i in range(300):
        commands.append({"id": f"r{i}", **rng.choice([ENDLESS, {"cmd": "info"}, {"cmd": "load", "path": str(model)}])})
        commands.append({"id": f"c{i}", "cmd": "cancel", "target": f"r{rng.randrange(i + 1)}"})
    commands.append({"id": "all", "cmd": "cancel", "all": True})
    worker.send(*commands)
    last = {"id": "last", "cmd": "load", "path": str(model)}
    assert worker.call(last)["event"] == "done"
    answer = {"id": "answer", **ANSWER}
    assert worker.call(answer)["event"] == "done"
    worker.close_stdin()
    assert worker.wait_end() == 0
    check_session([*commands, last, answer], worker.events)


@pytest.mark.nightly  # the transcript i-2-free-again has a few
def test_thousands_of_ids_used_again_as_soon_as_they_are_free() -> None:
    ids, rounds = [f"id {i}" for i in range(1000)], 5
    commands: list[Event] = []
    with WorkerProcess("--mock") as worker:
        for number in range(rounds):
            load = {"id": f"barrier {number}", "cmd": "load", "path": "mock"}
            wave = [load, *({"id": id, "cmd": "generate", "prompt": f"{number} {id} "} for id in ids)]
            worker.send(*wave)
            commands += wave
            worker.call({"id": f"end {number}", "cmd": "unload"})
        texts = dict.fromkeys(ids, "")
        for event in worker.events:
            if event["event"] == "token":
                texts[event["id"]] += event["token"]
        assert texts == {id: "".join(f"{number} {id} " for number in range(rounds)) for id in ids}
        events = [event for event in worker.events if not event["id"].startswith("end")]
        check_session(commands, events)


@pytest.mark.nightly
def test_loading_and_unloading_again_and_again_leaves_nothing_behind(worker: WorkerProcess, model: Path) -> None:
    texts, memory, descriptors = set(), [], 0
    for cycle in range(5):
        worker.load(model, id=f"l{cycle}")
        worker.send(*({"id": f"g{cycle}.{i}", **ANSWER} for i in range(3)), {"id": f"u{cycle}", "cmd": "unload"})
        assert worker.terminal(f"u{cycle}")["freed_bytes"] > 0
        texts |= {worker.text(f"g{cycle}.{i}") for i in range(3)}
        memory.append(worker.call({"id": f"s{cycle}", "cmd": "stats"})["memory"]["active_bytes"])
        descriptors = descriptors or open_descriptors(worker.process.pid)
    assert len(texts) == 1
    assert memory[-1] <= memory[0] < 1 << 20
    wait_for_descriptors(worker, descriptors)


def open_descriptors(pid: int) -> int:
    """Return the number of open descriptors of a process; 0 if the system does not show it."""
    folder = Path(f"/proc/{pid}/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def wait_for_descriptors(worker: WorkerProcess, most: int) -> None:
    """Wait until a process has no more open descriptors. One may be open for a moment, for the memory's pressure."""
    wait_until(lambda: open_descriptors(worker.process.pid) <= most, "some descriptors stay open")


def test_a_hello_that_names_its_host_again_and_again_opens_nothing_more() -> None:
    hello = {"cmd": "hello", "host_pid": os.getpid()}
    with WorkerProcess("--mock") as worker:
        worker.call({"id": "first", **hello})
        before = open_descriptors(worker.process.pid)
        worker.send(*({"id": f"h{i}", **hello} for i in range(100)))
        assert worker.terminal("h99")["event"] == "done"
        wait_for_descriptors(worker, before)
        assert worker.quit() == 0


# Pipes and descriptors.


def test_both_pipes_full_at_once_lose_nothing(model: Path) -> None:
    """The host writes without reading until nothing moves any more, and then reads."""
    load = {"id": "load", "cmd": "load", "path": str(model)}
    work: list[Event] = [{"id": f"g{i}", **ENDLESS, "max_tokens": 40} for i in range(60)]
    wrong: list[Event] = [{"id": f"w{i}", "cmd": "sing", "text": "x" * 200} for i in range(9000)]
    mixed = [command for pair in itertools.zip_longest(wrong, work) for command in pair if command]
    with WorkerProcess(read=False) as worker:
        writer = threading.Thread(target=worker.send, args=(load, *mixed))
        writer.start()
        wait_for_pause(worker)
        assert writer.is_alive(), "the worker reads no more"
        worker.start_reading()
        writer.join(SECONDS)
        worker.close_stdin()
        assert worker.wait_end() == 0
        check_session([load, *mixed], worker.events)
        assert all(worker.terminal(command["id"])["finish_reason"] == "length" for command in work)


@pytest.mark.nightly
@pytest.mark.parametrize("limit", [10, 32])
def test_with_hardly_any_descriptors_every_request_is_answered(limit: int, model: Path) -> None:
    """With too few of them the model library cannot be imported, and the error reports it."""
    command = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", sys.executable, "-P", "-m", "lmwire_worker"]
    commands: list[Event] = [{"id": "l", "cmd": "load", "path": str(model)}, {"id": "g", **ANSWER}]
    with WorkerProcess(command=command) as worker:
        worker.send(*commands)
        worker.close_stdin()
        code = worker.wait_end()
        check_session(commands, worker.events)
        assert code in (0, 70)
        assert limit < 32 or (code, worker.terminal("g")["event"]) == (0, "done")
