"""The memory of a model that speaks is released."""

from pathlib import Path

import pytest

from support.models.random_synthesis import write_qwen3_tts
from support.runners.memory_release import check_memory_comes_back

pytestmark = pytest.mark.nightly


def test_loading_and_unloading_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    folder = write_qwen3_tts(tmp_path / "wide", talker={"text_vocab_size": 300_000})
    check_memory_comes_back(folder, lambda id: {"id": id, "cmd": "speak", "text": "Hello.", "seed": 1})
