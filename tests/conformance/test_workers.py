"""The workers of this repository pass every transcript, with no baseline.

The mock plays all of them for each commit, on a thread of the test's process where the transcript allows it, and a
random text model those that the mock cannot or that touch the model's own state. At night the mock plays all of them as
a process, and the random model in one process and in two ranks. Other models play the transcripts in which models
differ, and with `make conformance` all of them.
"""

import os
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from lmwire_conformance import report
from lmwire_conformance.worker import process
from lmwire_conformance.worker.replay import replay
from lmwire_conformance.worker.runner import listed_features, skipped_result
from lmwire_conformance.worker.transcript import read_all
from random_model import write_model
from random_vision import write_vision_model
from support.models.random_embeddings import write_embedding_model
from support.models.random_speech import write_whisper
from support.models.random_synthesis import write_qwen3_tts
from support.process.mock_host import mock
from support.process.worker_process import SECONDS
from support.process.worker_thread import signal_thread, start_on_thread

WORKER = [sys.executable, "-P", "-m", "lmwire_worker"]
WHOLE = os.environ.get("LMWIRE_CONFORMANCE") == "all"

NEEDS_A_MODEL = {"b-8-kv-bits", "chat-template", "j-1-formats", "j-2-wrong-formats"}
"""Transcripts about what the mock lacks: a KV cache, grammars, templates."""
OF_A_PROCESS = {
    *("e-4-sighup", "e-4-sigint", "e-4-sigterm", "e-5-host-gone"),
    *("g-1-bridge", "g-3-bridge-settings", "s-3-before-any-object"),
}
"""Transcripts about signals, the death of the host and bridge sessions, which a worker on a thread does not know."""
OF_A_TEXT_MODEL = NEEDS_A_MODEL | {"a-1-same-answer", "n-3-choices"}
"""Transcripts that a text model plays for each commit: session and scheduler are the same beneath the mock, but batches
and choices are not. tests/generation tests the caches, the logprobs, the truncation and the grammars."""
OF_THE_BUILT_IN = {
    "b-4-failed-load",
    "chat",
    "k-7-logprobs",
    "l-4-idle-again",
    "n-3-choices",
    "p-1-required",
    "tokenize",
}
"""Transcripts that depend on the answers of a trained model, which ends its turn where a random one goes on."""
OF_A_VISION_MODEL = {"a-1-same-answer", "b-8-kv-bits", "chat", "m-2-media", "n-7-truncate"}
"""Transcripts that a vision model answers differently."""


pytestmark = pytest.mark.slow


def test_the_mock_worker_passes_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", start_on_thread)
    monkeypatch.setattr(process, "_signal_group", signal_thread)
    played = {item.name for item in read_all()} - NEEDS_A_MODEL - OF_A_PROCESS
    assert _failures(mock(), "mock", skipped=NEEDS_A_MODEL, only=played) == []


def test_the_mock_worker_passes_where_a_process_matters() -> None:
    assert _failures(mock(), "mock", skipped=NEEDS_A_MODEL, only=OF_A_PROCESS | {"hello"}) == []


@pytest.mark.nightly
def test_the_mock_worker_passes() -> None:
    assert _failures(mock(), "mock", skipped=NEEDS_A_MODEL) == []


def test_the_mlx_worker_passes_where_a_model_matters(tmp_path: Path) -> None:
    model = str(write_model(tmp_path / "model"))
    assert _failures(WORKER, model, skipped=set(), only=OF_A_TEXT_MODEL) == []


@pytest.mark.nightly
def test_the_mlx_worker_passes(tmp_path: Path) -> None:
    assert _failures(WORKER, str(write_model(tmp_path / "model")), skipped=set()) == []


@pytest.mark.nightly
def test_the_built_in_model_passes() -> None:
    assert _failures(WORKER, "builtin:tiny", skipped=set(), only=None if WHOLE else OF_THE_BUILT_IN) == []


@pytest.mark.nightly
def test_a_model_that_is_split_over_ranks_passes(tmp_path: Path) -> None:
    refused = {"b-8-kv-bits", "embed", "speak", "transcribe"}
    assert _failures([*WORKER, "--ranks", "2"], str(write_model(tmp_path / "model")), skipped=refused) == []


@pytest.mark.nightly
def test_a_vision_model_passes(tmp_path: Path) -> None:
    model = str(write_vision_model(tmp_path / "model"))
    assert _failures(WORKER, model, skipped=set(), only=None if WHOLE else OF_A_VISION_MODEL) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "write"), [("embed", write_embedding_model), ("transcribe", write_whisper), ("speak", write_qwen3_tts)]
)
def test_a_model_of_another_kind_passes_its_transcripts(tmp_path: Path, name: str, write: object) -> None:
    assert callable(write)
    assert _failures(WORKER, str(write(tmp_path / "model")), skipped=set(), only={name, "model"}) == []


@cache
def _features(*command: str) -> frozenset[str]:
    return frozenset(listed_features(command, SECONDS))


def _failures(command: list[str], model: str, *, skipped: set[str], only: Collection[str] | None = None) -> list[str]:
    """Play transcripts, two at a time, since most of each is waiting. Return a report of each failure.

    Args:
        command: Starts the worker.
        model: The model to load.
        skipped: The transcripts about features that the worker lacks.
        only: The transcripts to play, or None for all.
    """
    served = _features(*command)
    transcripts = read_all()
    assert {item.name for item in transcripts if skipped_result(item, served)} == skipped
    assert only is None or set(only) <= {item.name for item in transcripts}
    with ThreadPoolExecutor(2) as pool:
        played = [item for item in transcripts if item.name not in skipped and (only is None or item.name in only)]
        cases = list(pool.map(lambda item: replay(item, command, model, SECONDS), played))
    return [report.format_result(case) for case in cases if case.outcome != "pass"]
