"""Helpers that drive embedding runners as the scheduler does."""

import threading
from pathlib import Path
from typing import Any

from lmwire_protocol import Embed, Load
from lmwire_worker.embeddings.runner import EmbeddingRunner
from lmwire_worker.engine.interface import EmbeddingOutput, Preparation
from lmwire_worker.loading.model_loader import MlxModelLoader
from support.process.worker_process import SECONDS


def open_runner(folder: Path, engine: MlxModelLoader | None = None, /, **fields: Any) -> EmbeddingRunner:
    """Load a model with the given loader or a new one, and return its runner."""
    engine = engine or MlxModelLoader()
    engine.prepare()
    runner = engine.open(Load(path=str(folder), **fields), lambda *progress: None, lambda: None)
    assert isinstance(runner, EmbeddingRunner)
    return runner


def gather(runner: EmbeddingRunner, request: Embed) -> Preparation | None:
    """Read a request's images, and return the preparation; None if it has no images."""
    there = threading.Event()
    gathering = runner.prepare(request, there.set)
    assert gathering is None or there.wait(SECONDS)
    return gathering


def embed(runner: EmbeddingRunner, *requests: Embed) -> list[list[list[float]]]:
    """Return the vectors of each request. All requests run together."""
    for key, request in enumerate(requests):
        runner.add(key, request, 0, prepared=gather(runner, request))
    found: list[dict[int, list[float]]] = [{} for _ in requests]
    while any(len(vectors) < len(request.input) for vectors, request in zip(found, requests, strict=True)):
        for outcome in runner.step():
            assert isinstance(outcome, EmbeddingOutput)
            assert outcome.index not in found[outcome.key]
            found[outcome.key][outcome.index] = outcome.vector.tolist()
    return [[vectors[index] for index in range(len(vectors))] for vectors in found]
