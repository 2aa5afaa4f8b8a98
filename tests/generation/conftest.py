from typing import Any, Final

import pytest

from random_model import write_model
from support.runners.generation_runners import FolderOf, RunnerOf, runners

FEWER_LAYERS: Final[dict[str, dict[str, Any]]] = {"qwen3_next": {"num_hidden_layers": 2, "full_attention_interval": 2}}
"""One layer of each kind, where one of them takes a processor as long as all layers of another family."""


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """A tiny float32 model of a family, which ends its turn now and then."""
    root = tmp_path_factory.mktemp("models")
    return lambda family: write_model(root / family, family, **FEWER_LAYERS.get(family, {}))


@pytest.fixture(scope="session")
def runner_of(folder_of: FolderOf) -> RunnerOf:
    return runners(folder_of)
