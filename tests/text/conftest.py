from collections.abc import Callable
from pathlib import Path

import pytest

from lmwire_worker.text.lane import TextLane
from random_model import write_model
from text_lanes import open_lane


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tiny float32 model of a family, which ends its turn now and then."""
    root = tmp_path_factory.mktemp("models")
    return lambda family: write_model(root / family, family)


@pytest.fixture(scope="session")
def lane_of(folder_of: Callable[[str], Path]) -> Callable[[str], TextLane]:
    """A lane of a family, opened once; tests leave it empty."""
    lanes: dict[str, TextLane] = {}

    def lane_of(family: str) -> TextLane:
        if family not in lanes:
            lanes[family] = open_lane(folder_of(family))
        return lanes[family]

    return lane_of
