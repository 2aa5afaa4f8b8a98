"""The workers of this repository pass every transcript, with no baseline."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lmwire_conformance import report
from lmwire_conformance.replay import replay
from lmwire_conformance.report import Case
from lmwire_conformance.transcript import read_all
from random_model import write_model

SECONDS = 60.0
WORKER = [sys.executable, "-m", "lmwire_worker"]


def test_the_mock_worker_passes() -> None:
    assert _failures([*WORKER, "--mock"], "mock") == []


def test_the_mlx_worker_passes(tmp_path: Path) -> None:
    assert _failures(WORKER, str(write_model(tmp_path / "model"))) == []


def _failures(command: list[str], model: str) -> list[str]:
    """Plays all transcripts, two at a time, since most of each is waiting."""
    with ThreadPoolExecutor(2) as pool:
        cases: list[Case] = list(pool.map(lambda item: replay(item, command, model, SECONDS), read_all()))
    return [report.line(case) for case in cases if case.outcome != "pass"]
