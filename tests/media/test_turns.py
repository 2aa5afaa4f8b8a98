"""Memory is handed out in turn: small work does not wait for large work, and large work is not overtaken for ever."""

import pytest

from lmwire_worker.media.turns import LARGE_BYTES, Turns


@pytest.fixture
def dropped() -> set[str]:
    return set()


@pytest.fixture
def turns(dropped: set[str]) -> Turns[str]:
    """A thousand bytes, of which small work has 125 to itself."""
    return Turns(1000, dropped.__contains__)


def taken(turns: Turns[str], **options: bool) -> str | None:
    grant = turns.next(**options)
    return grant.item if grant else None


def test_work_of_one_size_is_served_in_its_order(turns: Turns[str]) -> None:
    for item in "abc":
        turns.enter(item, 100, 100)
    assert [taken(turns), taken(turns), taken(turns), taken(turns)] == ["a", "b", "c", None]


def test_work_waits_until_its_memory_is_free(turns: Turns[str]) -> None:
    turns.enter("a", 800, 800)
    turns.enter("b", 800, 800)
    assert (taken(turns), taken(turns), turns.used) == ("a", None, 800)
    turns.give(800, is_large=True)
    assert taken(turns) == "b"


def test_small_work_overtakes_large_work_that_waits(turns: Turns[str]) -> None:
    turns.enter("large", 800, LARGE_BYTES + 1)
    turns.enter("larger", 800, LARGE_BYTES + 1)
    turns.enter("small", 100, 100)
    assert [taken(turns), taken(turns), taken(turns)] == ["small", "large", None]


def test_small_work_always_has_its_share(turns: Turns[str]) -> None:
    assert turns.largest == 875
    turns.enter("large", 875, LARGE_BYTES)
    assert taken(turns) == "large"
    turns.enter("small", 125, 1)
    assert taken(turns) == "small"


def test_small_work_that_overtakes_takes_its_share_alone(turns: Turns[str]) -> None:
    turns.enter("running", 300, 1)
    turns.enter("large", 800, 2)
    for number in range(5):
        turns.enter(f"small {number}", 50, 3)
    order = [taken(turns) for _ in range(4)]
    assert order == ["running", "small 0", "small 1", None], "otherwise the large one would wait for ever"
    turns.give(300, is_large=True)
    assert taken(turns) == "large"


def test_the_items_of_one_request_take_turns_with_those_of_others(turns: Turns[str]) -> None:
    finish = 0.0
    for number in range(3):
        finish = turns.enter(f"many {number}", 10, 10, finish)
    turns.enter("one", 10, 10)
    assert [taken(turns) for _ in range(4)] == ["many 0", "one", "many 1", "many 2"]


def test_what_nobody_needs_is_passed_over(turns: Turns[str], dropped: set[str]) -> None:
    turns.enter("a", 900, 1)
    turns.enter("b", 100, 1)
    dropped.add("a")
    assert (taken(turns), turns.used) == ("b", 100)


def test_large_work_can_be_left_out(turns: Turns[str]) -> None:
    turns.enter("large", 500, 1)
    assert taken(turns, large_too=False) is None
    turns.enter("small", 100, 2)
    assert [taken(turns, large_too=False), taken(turns)] == ["small", "large"]
