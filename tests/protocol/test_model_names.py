"""The names that find a model."""

import pytest

from lmwire_protocol.model_names import NameIndex, ambiguous_name


@pytest.fixture
def index() -> NameIndex[int]:
    index: NameIndex[int] = NameIndex()
    index.add("mlx-community/Qwen3-4B", ["qwen"], 1)
    index.add("owner/qwen3-4b", [], 2)
    index.add("/models/Small/", [], 3)
    index.add("mlx-community/Small", [], 4)
    index.add("owner/QWEN", [], 5)
    return index


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("mlx-community/Qwen3-4B", [1]),
        ("MLX-Community/qwen3-4b", [1]),
        ("QWEN", [1]),
        ("owner/qwen", [5]),
        ("/models/Small/", [3]),
        ("nothing", []),
        ("", []),
    ],
)
def test_an_id_wins_over_an_alias_which_wins_over_a_last_part(
    index: NameIndex[int], name: str, models: list[int]
) -> None:
    assert index.find_all(name) == models


@pytest.mark.parametrize(("name", "models"), [("Qwen3-4B", [1, 2]), ("small", [3, 4])])
def test_a_last_part_of_several_ids_finds_all_of_them(index: NameIndex[int], name: str, models: list[int]) -> None:
    assert index.find_all(name) == models


def test_an_ambiguous_name_lists_the_models_and_is_cut() -> None:
    assert ambiguous_name("x" * 300, ["a/x", "b/x"]) == f"the name {'x' * 200!r} fits a/x and b/x; write it whole"
