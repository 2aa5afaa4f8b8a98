"""docs/scale.md has the tables that tools/scale.py computes, and the model says what the page does."""

from pathlib import Path

import pytest

import scale

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()


def test_the_page_has_the_tables_of_the_program() -> None:
    assert [table for table in scale.tables() if table not in PAGE] == []


def test_a_second_rank_halves_the_layers_and_not_the_table_of_embeddings() -> None:
    shape = scale.SHAPES["4B"]
    assert shape.rank_bytes(2) - shape.table_bytes == (shape.rank_bytes(1) - shape.table_bytes) / 2


def test_a_model_whose_weights_take_longer_than_its_dispatch_is_faster_on_ranks() -> None:
    huge = scale.SHAPES["32B"]._replace(width=40_960, inner=204_800, queries=65_536)
    assert huge.tokens_s(1, 2) > huge.tokens_s(1)
    assert scale.SHAPES["8B"].tokens_s(1, 2) < scale.SHAPES["8B"].tokens_s(1)


@pytest.mark.parametrize("check", [check for check in scale.CHECKS if "weights" in check.what], ids=str)
def test_the_weights_of_a_rank_are_predicted_to_a_hundredth(check: scale.Check) -> None:
    assert check.predicted == pytest.approx(check.middle, rel=0.01)
