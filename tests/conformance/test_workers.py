"""The workers of this repository pass every transcript, with no baseline."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lmwire_conformance import report
from lmwire_conformance.replay import replay
from lmwire_conformance.transcript import read_all
from lmwire_conformance.worker import features, missing
from random_model import write_model
from worker_process import SECONDS

WORKER = [sys.executable, "-P", "-m", "lmwire_worker"]


NEEDS_A_MODEL = {"b-8-kv-bits", "chat-template", "j-1-formats", "j-2-wrong-formats"}
"""Transcripts about what the mock has not got: keys and values, grammars, templates."""


def test_the_mock_worker_passes() -> None:
    assert _failures([*WORKER, "--mock"], "mock", skipped=NEEDS_A_MODEL) == []


def test_the_mlx_worker_passes(tmp_path: Path) -> None:
    assert _failures(WORKER, str(write_model(tmp_path / "model")), skipped=set()) == []


def _failures(command: list[str], model: str, *, skipped: set[str]) -> list[str]:
    """Plays all transcripts, two at a time, since most of each is waiting."""
    served = features(command, SECONDS)
    transcripts = read_all()
    assert {item.name for item in transcripts if missing(item, served)} == skipped
    with ThreadPoolExecutor(2) as pool:
        played = [item for item in transcripts if item.name not in skipped]
        cases = list(pool.map(lambda item: replay(item, command, model, SECONDS), played))
    return [report.line(case) for case in cases if case.outcome != "pass"]
