"""A speech model's memory is released."""

import base64
from pathlib import Path

import pytest

from support.models.random_speech import recording, write_parakeet
from support.runners.memory_release import check_memory_comes_back

pytestmark = pytest.mark.nightly


def test_loading_and_unloading_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    folder = write_parakeet(tmp_path / "wide", expansion=1500)
    sound = {"data": base64.b64encode(recording(0.5)).decode()}
    check_memory_comes_back(folder, lambda id: {"id": id, "cmd": "transcribe", "audio": sound})
