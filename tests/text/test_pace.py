"""How prompts are sliced."""

import itertools

import pytest

from lmwire_worker.text.pace import FIRST, GAP, LADDER, LONGEST_S, STEPS, Pace

FAR = 1_000_000
"""Where a slice more or less does not change how far a token looks back."""


def learned(pace: Pace, *, decode_s: float, token_s: float, running: int = 1, prompts: int = 1) -> int:
    """The slice that the pace settles on, on a device of this speed."""
    size = 0
    for _ in range(40):
        if running:
            pace.learn(decode_s, running, 0, 0, 0)
        size = pace.slice(running, prompts, FAR)
        pace.learn(decode_s * bool(running) + token_s * size * prompts, running, prompts, size, FAR)
    return size


def test_running_answers_wait_a_few_steps_at_most() -> None:
    size = learned(Pace(), decode_s=0.010, token_s=0.0002)
    assert size == max(step for step in LADDER if step * 0.0002 <= (GAP - 1) * 0.010)


def test_without_running_answers_a_slice_is_as_long_as_a_cancel_may_wait() -> None:
    size = learned(Pace(), decode_s=0, token_s=0.0003, running=0)
    assert size == max(step for step in LADDER if step * 0.0003 <= LONGEST_S)


def test_a_prompt_beside_slow_answers_gets_as_many_of_their_steps() -> None:
    size = learned(Pace(), decode_s=0.200, token_s=0.001)
    assert 0.75 * (GAP - 1) * 0.200 <= size * 0.001 <= (GAP - 1) * 0.200


def test_prompts_that_are_processed_together_share_the_time() -> None:
    alone = learned(Pace(), decode_s=0.010, token_s=0.0001)
    assert learned(Pace(), decode_s=0.010, token_s=0.0001, prompts=4) <= alone / 4


def test_slices_grow_step_by_step_and_stay_on_the_ladder() -> None:
    pace = Pace()
    sizes = []
    for _ in range(12):
        sizes.append(pace.slice(0, 1, sum(sizes)))
        pace.learn(1e-6 * sizes[-1], 0, 1, sizes[-1], sum(sizes[:-1]))
    assert sizes[0] == FIRST and sizes[-1] == LADDER[-1]
    assert all(later <= 2 * earlier for earlier, later in itertools.pairwise(sizes))
    assert set(sizes) <= set(LADDER)


def test_a_slow_device_gets_the_smallest_slice() -> None:
    assert learned(Pace(), decode_s=0.001, token_s=1.0) == LADDER[0]


def test_most_of_the_time_that_there_is_for_a_slice_is_used() -> None:
    for token_us in range(30, 1000, 7):
        size = learned(Pace(), decode_s=0.010, token_s=token_us * 1e-6)
        assert 0.75 * (GAP - 1) * 0.010 <= size * token_us * 1e-6 <= (GAP - 1) * 0.010


def test_a_step_that_was_late_by_accident_changes_nothing() -> None:
    pace = Pace()
    before = learned(pace, decode_s=0.010, token_s=0.0002)
    for _ in range(STEPS // 2):
        pace.learn(1.0, 1, 0, 0, 0)
    assert pace.slice(1, 1, FAR) == before


def test_the_rest_of_a_prompt_says_nothing_about_whole_slices() -> None:
    pace = Pace()
    before = learned(pace, decode_s=0.010, token_s=0.0002)
    pace.learn(0.015, 1, 1, 3, FAR)
    assert pace.slice(1, 1, FAR) == before


@pytest.mark.parametrize("token_s", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("context_s", [0.0, 1e-8, 1e-7])
def test_no_slice_takes_longer_than_it_may_however_the_cost_of_a_token_grows(token_s: float, context_s: float) -> None:
    pace = Pace()
    for _ in range(3):
        at = 0
        while at < 16_000:
            pace.learn(0.030, 1, 0, 0, 0)
            size = pace.slice(1, 1, at)
            seconds = size * (token_s + context_s * (at + size / 2))
            assert seconds <= (GAP - 1) * 0.030 + 1e-9 or size == LADDER[0]
            pace.learn(0.030 + seconds, 1, 1, size, at)
            at += size


def test_slices_shrink_as_a_prompt_grows_and_each_token_costs_more() -> None:
    pace = Pace()
    sizes = []
    while sum(sizes) < 16_000:
        pace.learn(0.001, 1, 0, 0, 0)
        at = sum(sizes)
        sizes.append(size := pace.slice(1, 1, at))
        pace.learn(0.001 + 1e-7 * (at + size / 2) * size, 1, 1, size, at)
    assert sizes[-1] < 5 < max(sizes)
