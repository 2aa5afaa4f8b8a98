"""An embedding model's memory is released."""

from pathlib import Path

import pytest

from support.models.random_embeddings import write_embedding_model
from support.runners.memory_release import check_memory_comes_back

pytestmark = pytest.mark.nightly


def test_loading_and_unloading_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    folder = write_embedding_model(tmp_path / "wide", intermediate_size=30_000)
    check_memory_comes_back(folder, lambda id: {"id": id, "cmd": "embed", "input": ["the sea", "the hill"]})
