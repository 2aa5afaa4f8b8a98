"""A host that does not read: nothing is lost, nothing grows without bound, and the reader goes on reading."""

import os

import pytest
from hypothesis import settings

from support.process.process_waits import stands_still, wait_for_pause
from support.process.worker_process import WorkerProcess
from support.process.worker_thread import MockOnThread

pytestmark = pytest.mark.slow

WORDS = [f"word{i}" for i in range(40)]
TOKENS = min(200_000, 4000 * settings().max_examples)


def test_a_host_that_stops_reading_loses_nothing_when_it_resumes() -> None:
    with WorkerProcess("--mock", read=False) as worker:
        prompt = " ".join(WORDS) + " "
        worker.send(
            {"id": "l", "cmd": "load", "path": "mock"},
            *({"id": id, "cmd": "generate", "prompt": prompt, "max_tokens": TOKENS} for id in ("a", "b")),
        )
        wait_for_pause(worker)
        worker.start_reading()
        for id in ("a", "b"):
            assert worker.terminal(id)["usage"]["completion_tokens"] == TOKENS
            assert worker.text(id) == prompt * (TOKENS // len(WORDS))
            assert worker.token_ids(id) == list(range(len(WORDS))) * (TOKENS // len(WORDS))
        assert max(map(len, worker.lines)) < 61_440
        assert len(worker.lines) < 2 * TOKENS, "tokens merged while the host was slow"


def test_below_the_merge_threshold_each_token_has_its_own_event() -> None:
    with MockOnThread() as worker:
        worker.load("mock:step_ms=1")
        worker.call({"id": "g", "cmd": "generate", "prompt": "a b c d", "max_tokens": 50})
        assert [event["token_ids"] for event in worker.of("g") if event["event"] == "token"] == [
            [i % 4] for i in range(50)
        ]


def test_a_paused_worker_still_reads_and_cancels() -> None:
    with WorkerProcess("--mock", read=False) as worker:
        worker.send(
            {"id": "l", "cmd": "load", "path": "mock"},
            {"id": "g", "cmd": "generate", "prompt": "a b", "max_tokens": 10**6},
        )
        wait_for_pause(worker)
        worker.send(*({"id": f"p{i}", "cmd": "ping"} for i in range(3000)))  # more than a pipe holds
        worker.send({"id": "c", "cmd": "cancel", "target": "g"})
        wait_for_pause(worker)  # until all of them are answered: with a reader the engine would go on before that
        worker.start_reading()
        assert worker.terminal("p0")["state"] == "paused"
        done = worker.terminal("g")
        assert done["finish_reason"] == "cancelled"
        assert done["usage"]["completion_tokens"] == len(worker.token_ids("g"))
        worker.check_terminals(["g", "c", *(f"p{i}" for i in range(3000))])


def test_replies_fill_no_more_than_their_reserve() -> None:
    """The host floods the worker with requests whose answers it does not read: at last its own writes wait."""
    with WorkerProcess("--mock", read=False) as worker:
        line = b'{"id":"x","cmd":"ping"}\n'
        sent, rest = _write_until_full(worker, line * 100)
        worker.start_reading()
        worker.write(rest)
        worker.call({"id": "end", "cmd": "ping"})
        assert len(worker.of("x")) == (sent + len(rest)) // len(line)


def _write_until_full(worker: WorkerProcess, data: bytes) -> tuple[int, bytes]:
    """Write until the worker stops reading; return the bytes written and the unwritten rest."""
    fd = worker.stdin.fileno()
    os.set_blocking(fd, False)
    sent, rest = 0, b""
    while True:
        rest = rest or data
        try:
            written = os.write(fd, rest)
        except BlockingIOError:
            if stands_still(worker.process.pid):
                break
            continue
        sent, rest = sent + written, rest[written:]
        assert sent < 4 << 20, "the worker takes everything in"
    os.set_blocking(fd, True)
    return sent, rest
