"""The workers of this repository pass every transcript, with no baseline.

All of them with the mock and with a random text model. Of those with other models the suite plays the part in which
models differ; `make conformance` plays the whole.
"""

import os
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lmwire_conformance import report
from lmwire_conformance.worker.replay import replay
from lmwire_conformance.worker.runner import listed_features, skipped_result
from lmwire_conformance.worker.transcript import read_all
from random_embeddings import write_embedding_model
from random_model import write_model
from random_speech import write_whisper
from random_vision import write_vision_model
from worker_process import SECONDS

WORKER = [sys.executable, "-P", "-m", "lmwire_worker"]
WHOLE = os.environ.get("LMWIRE_CONFORMANCE") == "all"

NEEDS_A_MODEL = {"b-8-kv-bits", "chat-template", "j-1-formats", "j-2-wrong-formats"}
"""Transcripts about what the mock has not got: keys and values, grammars, templates."""
OF_THE_BUILT_IN = {
    "b-4-failed-load",
    "chat",
    "k-7-logprobs",
    "l-4-idle-again",
    "n-3-choices",
    "p-1-required",
    "tokenize",
}
"""What depends on how a trained model answers: it ends its turn at once where a random one goes on."""
OF_A_SEEING_ONE = {"a-1-same-answer", "b-8-kv-bits", "chat", "m-2-media", "n-7-truncate"}
"""What a model that sees does in another way."""


def test_the_mock_worker_passes() -> None:
    assert _failures([*WORKER, "--mock"], "mock", skipped=NEEDS_A_MODEL) == []


def test_the_mlx_worker_passes(tmp_path: Path) -> None:
    assert _failures(WORKER, str(write_model(tmp_path / "model")), skipped=set()) == []


def test_the_model_that_is_built_in_passes() -> None:
    assert _failures(WORKER, "builtin:tiny", skipped=set(), only=None if WHOLE else OF_THE_BUILT_IN) == []


def test_a_model_that_sees_passes(tmp_path: Path) -> None:
    model = str(write_vision_model(tmp_path / "model"))
    assert _failures(WORKER, model, skipped=set(), only=None if WHOLE else OF_A_SEEING_ONE) == []


@pytest.mark.parametrize(("name", "write"), [("embed", write_embedding_model), ("transcribe", write_whisper)])
def test_a_model_of_another_kind_passes_what_is_about_it(tmp_path: Path, name: str, write: object) -> None:
    assert callable(write)
    assert _failures(WORKER, str(write(tmp_path / "model")), skipped=set(), only={name, "model"}) == []


def _failures(command: list[str], model: str, *, skipped: set[str], only: Collection[str] | None = None) -> list[str]:
    """Plays transcripts, two at a time, since most of each is waiting; returns a report of each that fails.

    Args:
        command: what starts the worker.
        model: what it loads.
        skipped: the transcripts about features that it has not got.
        only: those to play, when not all.
    """
    served = listed_features(command, SECONDS)
    transcripts = read_all()
    assert {item.name for item in transcripts if skipped_result(item, served)} == skipped
    assert only is None or set(only) <= {item.name for item in transcripts}
    with ThreadPoolExecutor(2) as pool:
        played = [item for item in transcripts if item.name not in skipped and (only is None or item.name in only)]
        cases = list(pool.map(lambda item: replay(item, command, model, SECONDS), played))
    return [report.format_result(case) for case in cases if case.outcome != "pass"]
