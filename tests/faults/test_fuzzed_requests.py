"""Random schemas, expressions, grammars and templates: each request ends once, and the worker and its streams go on.

LMWIRE_FUZZ_SECONDS sets the duration, and LMWIRE_FUZZ_SEED repeats the requests of that seed.
"""

import os
import time
from pathlib import Path

import pytest

from support.media.fuzzing import fuzz_seconds
from support.models.invented_requests import Inventor
from support.models.long_context import MAX_TOKENS, write_long_context
from support.process.worker_process import WorkerProcess

pytestmark = pytest.mark.slow

EXPECTED = (None, "invalid_request", "unsupported", "context_overflow", "line_too_long")
"""Codes of how a request may end. A schema that was put into itself a few times makes a line too long."""


def test_each_request_ends_once_and_a_stream_beside_goes_on(tmp_path: Path) -> None:
    seed = int(os.environ.get("LMWIRE_FUZZ_SEED", time.time_ns() % 2**32))
    inventor = Inventor(seed)
    count = 0
    with WorkerProcess() as worker:
        worker.load(write_long_context(tmp_path / "model"))
        ends_at = time.monotonic() + fuzz_seconds()
        while time.monotonic() < ends_at:
            count += 1
            request = inventor.request()
            stream, odd = f"stream {count}", f"odd {count}"
            endless = {"cmd": "generate", "prompt": "Once", "ignore_eos": True, "max_tokens": MAX_TOKENS}
            worker.send({"id": stream, **endless})
            worker.first_token(stream)
            worker.send({"id": odd, **request})
            seen = len(worker.of(stream))
            ended = worker.terminal(odd)
            assert ended.get("code") in EXPECTED, (seed, request)
            worker.wait_for(lambda event, stream=stream, seen=seen: len(worker.of(stream)) > seen)
            worker.call({"id": f"stop {count}", "cmd": "cancel", "target": stream})
            worker.terminal(stream)
            terminals = [event for event in worker.of(odd) if event["event"] in ("done", "error")]
            assert terminals == [ended], (seed, request)
    assert count
