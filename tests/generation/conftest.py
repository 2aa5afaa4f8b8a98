from typing import Any, Final

import pytest

from random_model import write_model
from support.models.emulated_kernels import cuda_kernels
from support.process.one_core import on_one_core
from support.runners.generation_runners import FolderOf, RunnerOf, runners

__all__ = ["cuda_kernels", "on_one_core"]

FEWER_LAYERS: Final[dict[str, dict[str, Any]]] = {
    "llama": {"num_hidden_layers": 1},
    "qwen3": {"num_hidden_layers": 1},
    "mamba": {"num_hidden_layers": 1},
    "gemma3_text": {"num_hidden_layers": 2, "sliding_window_pattern": 2},
    "qwen3_next": {"num_hidden_layers": 2, "full_attention_interval": 2},
}
"""One layer of each kind: each step costs a processor as much as it has layers, and thousands of them run here."""


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """A tiny float32 model of a family, which ends its turn now and then."""
    root = tmp_path_factory.mktemp("models")
    return lambda family: write_model(root / family, family, **FEWER_LAYERS.get(family, {}))


@pytest.fixture(scope="session")
def runner_of(folder_of: FolderOf) -> RunnerOf:
    return runners(folder_of)
