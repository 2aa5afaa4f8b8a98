"""A speech model's memory is released."""

import base64
from pathlib import Path

from given_back import check_memory_comes_back
from random_speech import recording, write_parakeet


def test_loading_and_unloading_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    folder = write_parakeet(tmp_path / "wide", expansion=1500)
    sound = {"data": base64.b64encode(recording(0.5)).decode()}
    check_memory_comes_back(folder, lambda id: {"id": id, "cmd": "transcribe", "audio": sound})
