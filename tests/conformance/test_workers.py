"""The workers of this repository pass every transcript, with no baseline.

The mock plays all of them for each commit, and a random text model those that the mock cannot or that touch the model's
own state. At night the random model plays all, in one process and in two ranks. Other models play the transcripts in
which models differ, and with `make conformance` all of them.
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
from random_model import write_model
from random_vision import write_vision_model
from support.models.random_embeddings import write_embedding_model
from support.models.random_speech import write_whisper
from support.models.random_synthesis import write_qwen3_tts
from support.process.worker_process import SECONDS

WORKER = [sys.executable, "-P", "-m", "lmwire_worker"]
WHOLE = os.environ.get("LMWIRE_CONFORMANCE") == "all"

NEEDS_A_MODEL = {"b-8-kv-bits", "chat-template", "j-1-formats", "j-2-wrong-formats"}
"""Transcripts about what the mock lacks: a KV cache, grammars, templates."""
OF_A_TEXT_MODEL = NEEDS_A_MODEL | {
    "a-1-same-answer",
    "e-1-drain",
    "k-7-logprobs",
    "n-3-choices",
    "n-7-truncate",
    "p-1-required",
}
"""Transcripts that a text model plays for each commit: session and scheduler are the same beneath the mock, but caches,
choices, grammars and steps are not."""
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


def test_the_mock_worker_passes() -> None:
    assert _failures([*WORKER, "--mock"], "mock", skipped=NEEDS_A_MODEL) == []


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


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("embed", write_embedding_model),
        pytest.param("transcribe", write_whisper, marks=pytest.mark.nightly),
        pytest.param("speak", write_qwen3_tts, marks=pytest.mark.nightly),
    ],
)
def test_a_model_of_another_kind_passes_its_transcripts(tmp_path: Path, name: str, write: object) -> None:
    assert callable(write)
    assert _failures(WORKER, str(write(tmp_path / "model")), skipped=set(), only={name, "model"}) == []


def _failures(command: list[str], model: str, *, skipped: set[str], only: Collection[str] | None = None) -> list[str]:
    """Play transcripts, two at a time, since most of each is waiting. Return a report of each failure.

    Args:
        command: Starts the worker.
        model: The model to load.
        skipped: The transcripts about features that the worker lacks.
        only: The transcripts to play, or None for all.
    """
    served = listed_features(command, SECONDS)
    transcripts = read_all()
    assert {item.name for item in transcripts if skipped_result(item, served)} == skipped
    assert only is None or set(only) <= {item.name for item in transcripts}
    with ThreadPoolExecutor(2) as pool:
        played = [item for item in transcripts if item.name not in skipped and (only is None or item.name in only)]
        cases = list(pool.map(lambda item: replay(item, command, model, SECONDS), played))
    return [report.format_result(case) for case in cases if case.outcome != "pass"]
