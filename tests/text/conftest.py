import pytest

from random_model import write_model
from text_lanes import FolderOf, LaneOf, lanes


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """A tiny float32 model of a family, which ends its turn now and then."""
    root = tmp_path_factory.mktemp("models")
    return lambda family: write_model(root / family, family)


@pytest.fixture(scope="session")
def lane_of(folder_of: FolderOf) -> LaneOf:
    return lanes(folder_of)
