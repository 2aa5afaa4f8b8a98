"""The threaded and the asyncio client, against fake workers with one behaviour each."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty

import pytest

import lmwire
from lmwire import (
    AsyncStream,
    AsyncTranscript,
    AsyncWorker,
    ProtocolViolation,
    RequestFailed,
    RequestTimeout,
    ShutdownTimeouts,
    StartFailed,
    Stream,
    Transcript,
    Worker,
    WorkerExited,
    WorkerLost,
)
from lmwire_protocol import Cancel, events
from support.process.fake_worker import fake
from support.process.worker_process import SECONDS
from support.protocol.both_clients import CLIENTS, MakeWorker, on_both_clients, public_methods


@on_both_clients
async def test_a_stream_yields_its_deltas_and_then_has_its_result(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker, worker.generate("one two") as stream:
        assert [delta.text async for delta in stream] == ["one", "two"]
        assert stream.result.finish_reason == "stop"


@on_both_clients
async def test_the_whole_text_is_one_call(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        assert await worker.generate("one two").text() == "onetwo"


@on_both_clients
async def test_reading_can_stop_and_go_on(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker, worker.generate("one two three") as stream:
        async for delta in stream:
            assert delta.text == "one"
            break
        assert await stream.text() == "twothree"


@on_both_clients
async def test_all_deltas_are_collected_read_or_not(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker, worker.generate("one two three") as stream:
        async for delta in stream:
            assert delta.text == "one"
            break
        assert [delta.text for delta in await stream.collect()] == ["one", "two", "three"]
        assert stream.result.finish_reason == "stop"


@on_both_clients
async def test_deltas_that_arrive_together_are_returned_together(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        first, second = worker.generate("one two three"), worker.generate("four")
        assert await second.text() == "four"  # all of the first has arrived by now
        assert [delta.text for delta in await first.read_available()] == ["one", "two", "three"]
        assert await first.read_available() == []
        assert first.result.finish_reason == "stop"


@on_both_clients
async def test_streams_interleave_and_an_unread_one_does_not_stop_others(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        unread = worker.generate(" ".join(["word"] * 50_000))
        assert await worker.generate("after it").text() == "afterit"
        assert len(await unread.text()) == 4 * 50_000


@on_both_clients
async def test_progress_goes_to_its_callback(make_worker: MakeWorker) -> None:
    seen: list[events.Progress] = []
    async with make_worker(fake("Good")) as worker:
        await worker.generate("one", on_progress=seen.append).text()
    assert [event.stage for event in seen] == ["prefill"]


@on_both_clients
async def test_an_exception_of_a_progress_callback_is_not_taken_for_a_timeout(make_worker: MakeWorker) -> None:
    def fail(_: events.Progress) -> None:
        raise mine

    async with make_worker(fake("Good")) as worker:
        for mine in (TimeoutError(), Empty()):
            with pytest.raises(type(mine)) as failure:
                await worker.generate("one", on_progress=fail, timeout=SECONDS).text()
            assert failure.value is mine


@on_both_clients
async def test_a_refusal_is_raised_with_its_code_and_the_worker_goes_on(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        with pytest.raises(RequestFailed, match="not_loaded: no model is loaded") as failure:
            await worker.info()
        assert (failure.value.code, failure.value.retryable, failure.value.field) == ("not_loaded", False, None)
        assert (await worker.ping()).state == "idle"


@on_both_clients
async def test_exiting_a_stream_early_cancels_it(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        async with worker.generate("forever") as stream:
            async for delta in stream:
                assert delta.text == "once"
                break
            assert (await worker.ping()).active == 1
        assert (await worker.ping()).active == 0
        with pytest.raises(RuntimeError, match="closed before its end"):
            _ = stream.result


def test_events_of_an_abandoned_request_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker(fake("Good")) as worker:
        stream = worker.generate("forever")
        cancel = stream.cancel

        def cancel_and_wait() -> None:
            cancel()
            worker.ping()  # the reply follows the terminal of the abandoned request

        monkeypatch.setattr(stream, "cancel", cancel_and_wait)
        with stream:
            next(iter(stream))
        assert stream._queue.empty()


@on_both_clients
async def test_a_cancelled_stream_ends_with_its_result(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker, worker.generate("forever") as stream:
        async for _ in stream:
            stream.cancel()
        assert stream.result.finish_reason == "cancelled"
        assert await worker.cancel(stream.id) == 0


@on_both_clients
async def test_requests_are_cancelled_by_id_or_all_at_once(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        streams = [worker.generate("forever") for _ in range(3)]
        assert await worker.cancel(streams[0].id) == 1
        assert (await worker.request(Cancel(all=True))).matched == 2
        assert [(await stream.wait()).finish_reason for stream in streams] == ["cancelled"] * 3


@on_both_clients
async def test_a_timeout_cancels_the_request_and_the_worker_goes_on(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        with pytest.raises(RequestTimeout, match=r"`generate` took longer than 0\.05 s") as failure:
            await worker.generate("forever", timeout=0.05).text()
        assert isinstance(failure.value, TimeoutError)
        assert failure.value.code == "timeout"
        assert (await worker.ping()).active == 0


@on_both_clients
async def test_quit_ends_what_runs_and_later_requests_fail(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        stream = worker.generate("forever")
        await worker.quit()
        assert (await stream.wait()).finish_reason == "cancelled"
        with pytest.raises(WorkerExited, match="exited with code 0"):
            await worker.ping()
        await worker.close()


@on_both_clients
async def test_the_result_of_a_request_in_flight_is_an_error(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker, worker.generate("forever") as stream:
        with pytest.raises(RuntimeError, match="has not ended"):
            _ = stream.result


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


@on_both_clients
async def test_a_banner_and_a_reply_byte_by_byte_are_awaited(make_worker: MakeWorker) -> None:
    async with make_worker(fake("StartsSlowly")) as worker:
        assert worker.hello.worker == "slow"


@on_both_clients
async def test_a_command_that_does_not_exist_cannot_start(make_worker: MakeWorker) -> None:
    with pytest.raises(StartFailed, match="cannot run '/nonexistent'"):
        await make_worker(["/nonexistent"]).start()


@on_both_clients
async def test_a_crash_before_hello_is_reported_with_code_and_stderr(make_worker: MakeWorker) -> None:
    with pytest.raises(StartFailed, match=r"exited with code 3.*\n.*libengine\.so") as failure:
        await make_worker(fake("CrashesBeforeHello")).start()
    assert isinstance(failure.value.__cause__, WorkerExited)
    assert failure.value.__cause__.returncode == 3


@on_both_clients
async def test_a_worker_that_never_answers_hello_is_killed(make_worker: MakeWorker) -> None:
    for name in ("NeverAnswersHello", "EchoesItsInput"):
        worker = make_worker(fake(name), start_timeout=0.3)
        with pytest.raises(StartFailed, match=r"`hello` took longer than 0\.3 s"):
            await worker.start()
        assert worker.lost.signal is signal.SIGKILL


@on_both_clients
async def test_a_refused_protocol_is_reported(make_worker: MakeWorker) -> None:
    with pytest.raises(StartFailed, match="unsupported_protocol: protocol 7") as failure:
        await make_worker(fake("RefusesTheProtocol")).start()
    assert isinstance(failure.value.__cause__, RequestFailed)
    assert failure.value.__cause__.event.protocols == [7]


@on_both_clients
async def test_an_exit_mid_stream_fails_everything_that_waits(make_worker: MakeWorker) -> None:
    async with make_worker(fake("ExitsMidStream")) as worker:
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


@on_both_clients
async def test_a_killed_worker_is_reported_with_the_signal(make_worker: MakeWorker) -> None:
    async with make_worker(fake("KilledMidStream")) as worker:
        with pytest.raises(WorkerExited, match="was ended by SIGKILL"):
            await worker.generate("x").text()
        with pytest.raises(WorkerExited, match="SIGKILL"):
            await worker.ping()
        assert isinstance(worker.lost, WorkerExited)


@on_both_clients
async def test_garbage_after_hello_ends_the_worker(make_worker: MakeWorker) -> None:
    async with make_worker(fake("WritesGarbage")) as worker:
        deltas = []
        with pytest.raises(ProtocolViolation, match="not a JSON object: 'WARNING: something printed this'"):
            async for delta in worker.generate("x"):
                deltas.append(delta.text)
        assert deltas == ["good"]


@on_both_clients
async def test_a_flood_on_stderr_stops_nothing_and_its_tail_is_bounded(make_worker: MakeWorker) -> None:
    lines: list[str] = []
    async with make_worker(fake("FloodsStderr"), on_stderr=lines.append) as worker:
        assert await worker.generate("still here").text() == "stillhere"
    assert len(lines) == 20_000
    assert worker.stderr_tail == lines[-64:]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stderr_callback_that_fails_ends_the_worker_instead_of_leaving_it_unread() -> None:
    def fail(line: str) -> None:
        raise ValueError(line)

    with Worker(fake("FloodsStderr"), on_stderr=fail) as worker, pytest.raises(WorkerExited, match="SIGKILL"):
        worker.generate("x").text()


@on_both_clients
async def test_a_worker_that_closes_its_output_is_lost(make_worker: MakeWorker) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lmwire.transport.process._EXIT_TIMEOUT_AFTER_EOF_S", 0.1)
        async with make_worker(fake("ClosesItsStdout")) as worker:
            with pytest.raises(WorkerLost):
                await worker.generate("x").text()


@on_both_clients
async def test_writing_never_waits_for_a_worker_that_does_not_read(make_worker: MakeWorker) -> None:
    async with make_worker(
        fake("StopsReading"), shutdown_timeouts=ShutdownTimeouts(quit=0.1, eof=0.1, term=SECONDS)
    ) as worker:
        with pytest.raises(RequestTimeout):
            await worker.generate("x" * 2**20, timeout=0.05).text()
    assert worker.lost.signal is signal.SIGTERM


@pytest.mark.parametrize(
    ("name", "returncode"),
    [("Good", 0), ("IgnoresQuit", 0), ("IgnoresEndOfInput", -signal.SIGTERM), ("IgnoresSigterm", -signal.SIGKILL)],
)
@pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
def test_each_step_of_the_shutdown_ends_a_worker_that_ignores_the_one_before(
    make_worker: MakeWorker, name: str, returncode: int
) -> None:
    async def run() -> None:
        # The step that ends this worker has all the time that it needs.
        steps = ["Good", "IgnoresQuit", "IgnoresEndOfInput"]
        timeouts = ShutdownTimeouts(*(SECONDS if step == name else 0.1 for step in steps))
        async with make_worker(fake(name), shutdown_timeouts=timeouts) as worker:
            pass
        assert worker.lost.returncode == returncode
        await worker.close()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
def test_a_child_of_the_worker_dies_with_it(make_worker: MakeWorker, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    async def run() -> None:
        worker = await make_worker(fake("LeavesAChild", str(tmp_path / "fifo"))).start()
        with open(tmp_path / "fifo", "rb") as held:
            await worker.close()
            assert select.select([held], [], [], SECONDS)[0], "the child still has it open"
            assert held.read() == b""

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
def test_a_daemon_that_holds_the_pipes_open_delays_nothing(make_worker: MakeWorker, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    async def run() -> None:
        async with make_worker(fake("LeavesADaemon", str(tmp_path / "fifo"))) as worker:
            pass
        assert worker.lost.returncode == 0
        os.kill(int(worker.hello.worker), signal.SIGKILL)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_many_threads_share_a_worker() -> None:
    texts: dict[int, str] = {}

    def ask(number: int) -> None:
        texts[number] = worker.generate(f"answer {number}").text()

    with Worker(fake("Good")) as worker:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    assert texts == {number: f"answer{number}" for number in range(20)}


def test_cancelling_a_task_cancels_its_request() -> None:
    async def run() -> None:
        started = asyncio.Event()

        async def read() -> None:
            async with worker.generate("forever") as stream:
                async for _ in stream:
                    started.set()

        async with AsyncWorker(fake("Good")) as worker:
            task = asyncio.create_task(read())
            await started.wait()
            assert (await worker.ping()).active == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await worker.ping()).active == 0

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_worker_whose_start_is_cancelled_is_gone() -> None:
    async def run() -> None:
        worker = AsyncWorker(fake("NeverAnswersHello"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(worker.start(), 0.1)
        assert isinstance(worker.lost, WorkerExited)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_both_clients_have_the_same_methods() -> None:
    assert public_methods(AsyncWorker) == public_methods(Worker)
    assert public_methods(AsyncStream) == public_methods(Stream)
    assert public_methods(AsyncTranscript) == public_methods(Transcript)
    assert public_methods(AsyncStream.__mro__[1]) == public_methods(Stream.__mro__[1])


def test_importing_the_package_imports_neither_asyncio_nor_the_worker() -> None:
    code = "import lmwire, sys; print(*{'asyncio', 'subprocess', 'lmwire_worker', 'mlx'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=SECONDS, check=True)
    assert run.stdout == b"\n"


def test_every_public_name_is_there() -> None:
    constants = {"DEFAULT_COMMAND"}
    assert all(getattr(lmwire, name).__name__ == name for name in set(lmwire.__all__) - constants)
    assert lmwire.DEFAULT_COMMAND[-1] == "lmwire_worker"
