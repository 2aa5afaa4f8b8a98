"""The Python client against each fault of the mock: it raises the right error, in time."""

import signal
from typing import Any

import pytest

from lmwire import ProtocolViolation, RequestFailed, RequestTimeout, StartFailed, Worker, WorkerExited
from lmwire.transport.child import spawn_process
from lmwire_protocol.limits import BANNER_BYTES, CLIENT_LINE_BYTES
from support.process.mock_host import faulty
from support.process.worker_process import SECONDS
from support.process.worker_thread import NEEDS_A_PROCESS, on_thread

DEATHS = [("signal=ABRT", -signal.SIGABRT), ("exit=0", 0)]
SHORT = 0.02
"""Seconds that a test waits for an event that never comes."""


def worker(*faults: str, **options: Any) -> Worker:
    """Return a worker on a thread, if its faults let it run there."""
    names = {fault.partition(":")[0] for fault in faults}
    spawn = on_thread if names.isdisjoint(NEEDS_A_PROCESS) else spawn_process
    options = {"start_timeout": SECONDS, "spawn": spawn, **options}
    return Worker(faulty(*faults), **options)


def answer(worker: Worker) -> str:
    worker.load("mock", timeout=SECONDS)
    return worker.generate("a b c d e", timeout=SECONDS).text()


def lost(worker: Worker) -> tuple[list[str], Exception]:
    """Return the texts of an answer that the worker does not finish, and the error."""
    worker.load("mock", timeout=SECONDS)
    deltas = []
    with pytest.raises((WorkerExited, ProtocolViolation)) as failure, worker.generate("a b c d e") as stream:
        deltas.extend(delta.text for delta in stream)
    return deltas, failure.value


@pytest.mark.slow
@pytest.mark.parametrize(("death", "returncode"), DEATHS)
def test_a_worker_that_dies_at_its_start_does_not_start(death: str, returncode: int) -> None:
    with pytest.raises(StartFailed) as failure:
        worker(f"crash-start:{death}").start()
    assert isinstance(failure.value.__cause__, WorkerExited)
    assert failure.value.__cause__.returncode == returncode
    assert failure.value.__cause__.stderr_tail[0] == "lmwire mock: dies on purpose"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("no-hello", RequestTimeout),
        ("newer-version", RequestFailed),
        ("wrong-version", ProtocolViolation),
        (f"garbage-before-hello:bytes={BANNER_BYTES + 1}", ProtocolViolation),
    ],
)
def test_a_worker_without_a_proper_hello_does_not_start(fault: str, cause: type[Exception]) -> None:
    with pytest.raises(StartFailed) as failure:
        worker(fault, start_timeout=SHORT if fault == "no-hello" else SECONDS).start()
    assert isinstance(failure.value.__cause__, cause)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "death", "returncode"),
    [("crash-mid-stream", "signal=KILL", -signal.SIGKILL), ("crash-mid-line", "exit=70", 70)],
)
def test_events_before_a_death_are_delivered_and_then_the_death(fault: str, death: str, returncode: int) -> None:
    with worker(f"{fault}:after=3,{death}") as dying:
        deltas, failure = lost(dying)
    assert deltas == ["a ", "b ", "c "][: 3 if fault == "crash-mid-stream" else 2]
    assert isinstance(failure, WorkerExited)
    assert failure.returncode == returncode
    assert "lmwire mock: dies on purpose" in failure.stderr_tail


@pytest.mark.slow
def test_a_complete_answer_survives_a_later_death() -> None:
    with worker("crash-after-terminal") as dying:
        assert answer(dying) == "a b c d e"
        with pytest.raises(WorkerExited):
            dying.ping(timeout=SECONDS)


@pytest.mark.parametrize("fault", ["garbage-between-events", "garbage-half-line", "long-line"])
def test_a_forbidden_line_is_a_violation(fault: str) -> None:
    with worker(fault) as polluted:
        deltas, failure = lost(polluted)
        assert isinstance(failure, ProtocolViolation)
        assert deltas == (["a "] if fault == "garbage-between-events" else [])
        with pytest.raises(ProtocolViolation):
            polluted.ping()


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        "garbage-before-hello",
        f"long-line:bytes={CLIENT_LINE_BYTES}",
        "stderr-flood",
        "duplicate-terminal",
        "event-after-terminal",
        "unknown-id",
        "unknown-event",
        "unknown-fields",
    ],
)
def test_faults_that_a_host_must_tolerate_change_no_answer(fault: str) -> None:
    with worker(fault) as odd:
        assert [answer(odd), answer(odd)] == ["a b c d e"] * 2
        assert odd.ping().queued == 0


def test_unknown_values_are_tolerated() -> None:
    with worker("unknown-values") as odd:
        assert answer(odd) == "a b c d e"
        stream = odd.generate("a", timeout=SECONDS)
        stream.wait()
        assert stream.result.finish_reason == "other"
        with pytest.raises(RequestFailed) as failure:
            odd.load("no such model", timeout=SECONDS)
        assert (failure.value.code, failure.value.retryable) == ("out_of_luck", False)
        assert odd.ping().state == "meditating"


def test_a_failed_load_is_reported_with_its_code() -> None:
    with worker("failed-load") as broken:
        with pytest.raises(RequestFailed) as failure:
            broken.load("mock")
        assert failure.value.code == "bad_model"
