"""A worker that dies in the middle of answers, as the Python client sees it: nothing is taken for a good end."""

import os
import signal
import sys
from pathlib import Path

import pytest

from lmwire import Stream, Worker, WorkerExited
from support.models.misbehaving_models import ABORTS, CRASHES, LEAVES, MARK, write_misbehaving_model
from support.nightly import nightly_but
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

MOCK = [sys.executable, "-P", "-m", "lmwire_worker", "--mock"]


def start_endless(worker: Worker) -> list[Stream]:
    """Answers in their middle."""
    worker.load("mock:step_ms=1", timeout=SECONDS)
    streams = [worker.generate("on and on", max_tokens=1_000_000, timeout=SECONDS) for _ in range(5)]
    for stream in streams:
        # The worker sends several tokens in one event while the host does not read.
        assert next(iter(stream)).text.startswith("on ")
    return streams


@pytest.mark.parametrize(
    "number",
    nightly_but({signal.SIGKILL, signal.SIGSEGV}, [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS]),
)
def test_a_worker_that_a_signal_kills_loses_every_stream_and_what_is_asked_later(number: signal.Signals) -> None:
    with Worker(MOCK) as worker:
        streams = start_endless(worker)
        os.kill(worker.pid, number)
        for stream in streams:
            with pytest.raises(WorkerExited) as lost:
                stream.wait()
            assert (lost.value.code, lost.value.signal) == ("worker_lost", number)
        with pytest.raises(WorkerExited):
            worker.ping(timeout=SECONDS)
        tail = "\n".join(worker.stderr_tail)
        assert ("Fatal Python error" in tail) == (number is not signal.SIGKILL), "where it was stands on stderr"


@pytest.mark.parametrize(
    ("behaviour", "number", "reported"),
    [
        (CRASHES, signal.SIGSEGV, "Segmentation fault"),
        pytest.param(ABORTS, signal.SIGABRT, "assertion failed: MARK", marks=pytest.mark.nightly),
        pytest.param(LEAVES, None, "", marks=pytest.mark.nightly),
    ],
    ids=["segmentation fault", "abort", "exit"],
)
def test_a_model_whose_code_kills_the_worker_is_found_on_stderr(
    tmp_path: Path, behaviour: str, number: signal.Signals | None, reported: str
) -> None:
    folder = write_misbehaving_model(tmp_path / "model", behaviour)
    with Worker() as worker:
        worker.load(str(folder), trust_remote_code=True, timeout=SECONDS)
        # Its answer counts upwards, so without the bias it would come to the token that kills the worker by itself.
        healthy = worker.generate([1, 2], max_tokens=900_000, logit_bias={MARK: -100.0}, timeout=SECONDS)
        assert next(iter(healthy)).token_ids
        poison = worker.generate([1, MARK, 2], timeout=SECONDS)
        for stream in (healthy, poison):
            with pytest.raises(WorkerExited) as lost:
                stream.wait()
            assert lost.value.signal is number
            assert (lost.value.returncode == 3) == (number is None)
            assert reported in "\n".join(lost.value.stderr_tail)
