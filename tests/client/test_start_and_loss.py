"""Starting, losing and ending a worker, with both clients."""

import os
import select
import signal
import threading
from math import inf
from pathlib import Path
from typing import IO

import pytest

from lmwire import (
    ProtocolViolation,
    RequestFailed,
    RequestTimeout,
    ShutdownTimeouts,
    StartFailed,
    Worker,
    WorkerExited,
    WorkerLost,
)
from lmwire.transport.process import Process
from support.process.fake_worker import fake
from support.process.worker_process import SECONDS
from support.process.worker_thread import on_thread
from support.protocol.both_clients import PROCESS, UNHURRIED, MakeWorker, on_both_clients, on_one_client


@on_both_clients
async def test_a_worker_is_started_once(make_worker: MakeWorker) -> None:
    idle = make_worker(fake("Good"))
    with pytest.raises(RuntimeError, match="has not been started"):
        await idle.ping()
    await idle.close()
    async with idle:
        with pytest.raises(RuntimeError, match="started once"):
            await idle.start()


@on_both_clients
async def test_the_host_is_watched_only_when_asked_for_or_by_default_command(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        assert worker.hello.worker == "fake "
    async with make_worker(fake("Good"), watch_host=True) as worker:
        assert worker.hello.worker == f"fake {os.getpid()}"


@on_one_client
async def test_a_banner_and_a_reply_byte_by_byte_are_awaited(make_worker: MakeWorker) -> None:
    async with make_worker(fake("StartsSlowly")) as worker:
        assert worker.hello.worker == "slow"


@pytest.mark.slow
@on_one_client
async def test_a_command_that_does_not_exist_cannot_start(make_worker: MakeWorker) -> None:
    with pytest.raises(StartFailed, match="cannot run '/nonexistent'"):
        await make_worker(["/nonexistent"], **PROCESS).start()


@on_both_clients
async def test_a_crash_before_hello_is_reported_with_code_and_stderr(make_worker: MakeWorker) -> None:
    with pytest.raises(StartFailed, match=r"exited with code 3.*\n.*libengine\.so") as failure:
        await make_worker(fake("CrashesBeforeHello")).start()
    assert isinstance(failure.value.__cause__, WorkerExited)
    assert failure.value.__cause__.returncode == 3


@on_both_clients
async def test_a_worker_that_never_answers_hello_is_killed(make_worker: MakeWorker) -> None:
    for name in ("NeverAnswersHello", "EchoesItsInput"):
        worker = make_worker(fake(name), start_timeout=0.01)
        with pytest.raises(StartFailed, match=r"`hello` took longer than 0\.01 s"):
            await worker.start()
        assert worker.lost.signal is signal.SIGKILL


@on_one_client
async def test_a_refused_protocol_is_reported(make_worker: MakeWorker) -> None:
    with pytest.raises(StartFailed, match="unsupported_protocol: protocol 7") as failure:
        await make_worker(fake("RefusesTheProtocol")).start()
    assert isinstance(failure.value.__cause__, RequestFailed)
    assert failure.value.__cause__.event.protocols == [7]


@pytest.mark.slow
@on_both_clients
async def test_an_exit_mid_stream_fails_everything_that_waits(make_worker: MakeWorker) -> None:
    async with make_worker(fake("ExitsMidStream"), **PROCESS) as worker:
        deltas = []
        with pytest.raises(WorkerExited) as failure:
            async for delta in worker.generate("x"):
                deltas.append(delta.text)
        assert deltas == ["half"]
        assert (failure.value.returncode, failure.value.signal, failure.value.code) == (70, None, "worker_lost")
        assert failure.value.stderr_tail == ["assertion failed: row 7"]
        assert (
            str(failure.value) == "the worker exited with code 70; the end of its stderr:\n    assertion failed: row 7"
        )


@pytest.mark.slow
@on_one_client
async def test_a_killed_worker_is_reported_with_the_signal(make_worker: MakeWorker) -> None:
    async with make_worker(fake("KilledMidStream"), **PROCESS) as worker:
        with pytest.raises(WorkerExited, match="was ended by SIGKILL"):
            await worker.generate("x").text()
        with pytest.raises(WorkerExited, match="SIGKILL"):
            await worker.ping()
        assert isinstance(worker.lost, WorkerExited)


@on_one_client
async def test_garbage_after_hello_ends_the_worker(make_worker: MakeWorker) -> None:
    async with make_worker(fake("WritesGarbage")) as worker:
        deltas = []
        with pytest.raises(ProtocolViolation, match="not a JSON object: 'WARNING: something printed this'"):
            async for delta in worker.generate("x"):
                deltas.append(delta.text)
        assert deltas == ["good"]


@pytest.mark.slow
@on_one_client
async def test_a_flood_on_stderr_stops_nothing_and_its_tail_is_bounded(make_worker: MakeWorker) -> None:
    lines: list[str] = []
    async with make_worker(fake("FloodsStderr"), on_stderr=lines.append, **PROCESS) as worker:
        assert await worker.generate("still here").text() == "stillhere"
    assert len(lines) == 20_000
    assert worker.stderr_tail == lines[-64:]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stderr_callback_that_fails_ends_the_worker_instead_of_leaving_it_unread() -> None:
    def fail(line: str) -> None:
        raise ValueError(line)

    with (
        Worker(fake("FloodsStderr"), on_stderr=fail, spawn=on_thread) as worker,
        pytest.raises(WorkerExited, match="SIGKILL"),
    ):
        worker.generate("x").text()


@pytest.mark.slow
@on_one_client
async def test_a_worker_that_closes_its_output_is_lost(make_worker: MakeWorker) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lmwire.transport.process.EXIT_TIMEOUT_AFTER_EOF_S", 0.1)
        async with make_worker(fake("ClosesItsStdout"), **PROCESS) as worker:
            with pytest.raises(WorkerLost):
                await worker.generate("x").text()


class Immortal:
    """A child that a kill does not end, as one that waits in the kernel. The test ends it."""

    pid = 0

    def __init__(self) -> None:
        ends = [os.pipe() for _ in range(3)]
        self.stdin: IO[bytes] = os.fdopen(ends[0][1], "wb", 0)
        self.stdout: IO[bytes] = os.fdopen(ends[1][0], "rb", 0)
        self.stderr: IO[bytes] = os.fdopen(ends[2][0], "rb", 0)
        self.others = [os.fdopen(ends[0][0], "rb", 0), os.fdopen(ends[1][1], "wb", 0), os.fdopen(ends[2][1], "wb", 0)]
        self.signals: list[signal.Signals] = []
        self.killed, self.may_end = threading.Event(), threading.Event()

    def wait(self) -> int:
        self.may_end.wait()
        return -signal.SIGKILL

    def signal(self, signal: signal.Signals) -> None:
        self.signals.append(signal)
        self.killed.set()


def test_a_worker_that_outlives_its_kill_is_killed_once_and_keeps_nothing_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmwire.transport.process.EXIT_TIMEOUT_AFTER_EOF_S", 0.0)
    child, line = Immortal(), threading.Event()
    process = Process(
        [], on_output=lambda _: inf, on_exit=lambda _: None, on_stderr=lambda _: line.set(), spawn=lambda _: child
    )
    _, output, errors = child.others
    output.close()
    child.killed.wait()
    for _ in range(3):  # each wakes the pump, which would then kill again
        line.clear()
        errors.write(b"still here\n")
        line.wait()
    assert child.signals == [signal.SIGKILL]
    child.may_end.set()
    assert process.wait()
    for other in (child.others[0], errors):
        other.close()


@pytest.mark.slow
@on_one_client
async def test_writing_never_waits_for_a_worker_that_does_not_read(make_worker: MakeWorker) -> None:
    async with make_worker(
        fake("StopsReading"), shutdown_timeouts=ShutdownTimeouts(quit=0.1, eof=0.1, term=SECONDS), **PROCESS
    ) as worker:
        with pytest.raises(RequestTimeout):
            await worker.generate("x" * 2**20, timeout=0.05).text()
    assert worker.lost.signal is signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "returncode"),
    [("Good", 0), ("IgnoresQuit", 0), ("IgnoresEndOfInput", -signal.SIGTERM), ("IgnoresSigterm", -signal.SIGKILL)],
)
def test_each_step_of_the_shutdown_ends_a_worker_that_ignores_the_one_before(name: str, returncode: int) -> None:
    # The step that ends this worker has all the time that it needs.
    steps = ["Good", "IgnoresQuit", "IgnoresEndOfInput"]
    timeouts = ShutdownTimeouts(*(SECONDS if step == name else 0.1 for step in steps))
    with Worker(fake(name), shutdown_timeouts=timeouts) as worker:
        pass
    assert isinstance(worker.lost, WorkerExited)
    assert worker.lost.returncode == returncode
    worker.close()


@pytest.mark.slow
def test_a_child_of_the_worker_dies_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    worker = Worker(fake("LeavesAChild", str(tmp_path / "fifo"))).start()
    with open(tmp_path / "fifo", "rb") as held:
        worker.close()
        assert select.select([held], [], [], SECONDS)[0], "the child still has it open"
        assert held.read() == b""


@pytest.mark.slow
def test_a_daemon_that_holds_the_pipes_open_delays_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with Worker(fake("LeavesADaemon", str(tmp_path / "fifo")), shutdown_timeouts=UNHURRIED) as worker:
        pass
    assert isinstance(worker.lost, WorkerExited)
    assert worker.lost.returncode == 0
    os.kill(int(worker.hello.worker), signal.SIGKILL)
