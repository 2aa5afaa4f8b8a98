from pathlib import Path
from typing import Any, Final

import pytest

from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.multimodal import prefill
from random_vision import FAMILIES, HEARING, write_vision_model
from support.models.talking_vision import write_talking_vision_model
from support.nightly import nightly_but
from support.process.one_core import on_one_core
from support.runners.generation_runners import FolderOf, RunnerOf, open_runner, runners

__all__ = ["on_one_core"]

FEWER_LAYERS: Final[dict[str, dict[str, Any]]] = {
    "qwen3_5": {"text_config": {"num_hidden_layers": 2, "full_attention_interval": 2}}
}
"""One layer of each kind, where one of them takes a processor as long as all layers of another family."""


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """A tiny model of a family that sees."""
    root = tmp_path_factory.mktemp("models")
    return lambda family: write_vision_model(root / family, family, **FEWER_LAYERS.get(family, {}))


@pytest.fixture(scope="session")
def runner_of(folder_of: FolderOf) -> RunnerOf:
    return runners(folder_of)


@pytest.fixture(scope="session", params=nightly_but({"gemma3"}, ["qwen3_vl", "gemma3"]))
def talker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GenerationRunner:
    """Return the runner of a model that sees, thinks and calls tools. Tests must not leave requests in it.

    For each commit it is one whose caches have windows.
    """
    return open_runner(write_talking_vision_model(tmp_path_factory.mktemp("models") / "talker", request.param))


@pytest.fixture(params=nightly_but({"qwen3_5"}, [family for family in FAMILIES if family not in HEARING]))
def family(request: pytest.FixtureRequest) -> str:
    """A family. For each commit one runs whose caches have states and positions in three dimensions."""
    return request.param


@pytest.fixture
def runner(family: str, runner_of: RunnerOf) -> GenerationRunner:
    """Return a family's runner with nothing cached, and with no check due within a test."""
    runner = runner_of(family)
    runner.clear_cache()
    runner.cache.prefix_cache.verify_interval = 1 << 30
    return runner


@pytest.fixture
def folder(family: str, folder_of: FolderOf) -> Path:
    return folder_of(family)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The digests of what the encoders are run on."""
    digests: list[bytes] = []
    encode = prefill.encode

    def encode_and_record(network: prefill.MultimodalNetwork, media_input: prefill.MediaInput) -> None:
        digests.append(media_input.digest)
        encode(network, media_input)

    monkeypatch.setattr(prefill, "encode", encode_and_record)
    return digests
