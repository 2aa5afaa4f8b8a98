"""The threaded and the asyncio client, against fake workers with one behaviour each."""

import asyncio
import subprocess
import sys
import threading
from queue import Empty

import pytest

import lmwire
from lmwire import (
    AsyncStream,
    AsyncTranscript,
    AsyncWorker,
    RequestFailed,
    RequestTimeout,
    Stream,
    Transcript,
    Worker,
    WorkerClosed,
    WorkerExited,
)
from lmwire_protocol import Cancel, events
from support.process.fake_worker import fake
from support.process.worker_process import SECONDS
from support.process.worker_thread import on_thread
from support.protocol.both_clients import UNHURRIED, MakeWorker, on_both_clients, public_methods

WORDS = 10_000
"""More tokens than the pipes hold."""


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
        unread = worker.generate(" ".join(["word"] * WORDS))
        assert await worker.generate("after it").text() == "afterit"
        assert len(await unread.text()) == 4 * WORDS


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
    with Worker(fake("Good"), spawn=on_thread) as worker:
        stream = worker.generate("forever")
        cancel = stream.cancel

        def cancel_and_wait() -> None:
            cancel()
            worker.ping()  # the reply follows the terminal of the abandoned request

        monkeypatch.setattr(stream, "cancel", cancel_and_wait)
        with stream:
            next(iter(stream))
        assert stream._queue.empty()  # noqa: SLF001 -- an abandoned stream cannot be read


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
        with pytest.raises(WorkerClosed, match="the worker has been closed"):
            await worker.ping()
        await worker.close()


@on_both_clients
async def test_a_worker_that_the_program_has_closed_says_so(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good"), shutdown_timeouts=UNHURRIED) as worker:
        pass
    with pytest.raises(WorkerClosed, match="the worker has been closed") as failure:
        await worker.generate("late").text()
    assert (failure.value.code, failure.value.returncode) == ("worker_lost", 0)


@on_both_clients
async def test_a_worker_that_died_before_its_close_still_names_the_cause(make_worker: MakeWorker) -> None:
    async with make_worker(fake("ExitsMidStream")) as worker:
        with pytest.raises(WorkerExited):
            await worker.generate("one").text()
    with pytest.raises(WorkerExited, match="exited with code"):
        await worker.ping()


@on_both_clients
async def test_the_result_of_a_request_in_flight_is_an_error(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker, worker.generate("forever") as stream:
        with pytest.raises(RuntimeError, match="has not ended"):
            _ = stream.result


def test_many_threads_share_a_worker() -> None:
    texts: dict[int, str] = {}

    def ask(number: int) -> None:
        texts[number] = worker.generate(f"answer {number}").text()

    with Worker(fake("Good"), spawn=on_thread) as worker:
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

        async with AsyncWorker(fake("Good"), spawn=on_thread) as worker:
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
        worker = AsyncWorker(fake("NeverAnswersHello"), spawn=on_thread)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(worker.start(), 0.1)
        assert isinstance(worker.lost, WorkerExited)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_both_clients_have_the_same_methods() -> None:
    assert public_methods(AsyncWorker) == public_methods(Worker)
    assert public_methods(AsyncStream) == public_methods(Stream)
    assert public_methods(AsyncTranscript) == public_methods(Transcript)
    assert public_methods(AsyncStream.__mro__[1]) == public_methods(Stream.__mro__[1])


@pytest.mark.slow
def test_importing_the_package_imports_neither_asyncio_nor_the_worker() -> None:
    code = "import lmwire, sys; print(*{'asyncio', 'subprocess', 'lmwire_worker', 'mlx'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=SECONDS, check=True)
    assert run.stdout == b"\n"


def test_every_public_name_is_there() -> None:
    others = {"DEFAULT_COMMAND", "ModelKind"}  # a constant and the alias of a Literal
    assert all(getattr(lmwire, name).__name__ == name for name in set(lmwire.__all__) - others)
    assert lmwire.DEFAULT_COMMAND[-1] == "lmwire_worker"
