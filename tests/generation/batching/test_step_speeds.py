"""Speeds of steps: a wider one is made if its tokens are worth its time, which is arithmetic with durations."""

from lmwire_worker.generation.batching.step_speeds import (
    FIRST_PATIENCE,
    MAX_PATIENCE,
    MIN_GAIN,
    StepSpeeds,
    StepWatch,
)
from support.runners.clock import Clock


def known(plain_s: float, wide_s: float, rows: int = 8, width: int = 4) -> StepSpeeds:
    """Return speeds that know both kinds of steps, whose first ones took much longer."""
    speeds = StepSpeeds()
    for seconds in (9.0, plain_s, plain_s, plain_s):
        speeds.note(rows, 1, seconds)
    for seconds in (9.0, wide_s, wide_s, wide_s):
        speeds.note(rows, width, seconds)
    return speeds


def test_until_both_are_known_half_a_token_for_each_row_is_enough() -> None:
    speeds = StepSpeeds()
    assert speeds.is_worth_it(8, 4, MIN_GAIN)
    assert not speeds.is_worth_it(8, 4, MIN_GAIN - 0.1)
    for _ in range(9):
        speeds.note(8, 1, 1.0)
    assert speeds.is_worth_it(8, 4, MIN_GAIN)


def test_then_the_tokens_must_be_worth_the_time() -> None:
    assert known(1.0, 1.2).is_worth_it(8, 4, 0.25)
    assert not known(1.0, 1.2).is_worth_it(8, 4, 0.15)
    assert not known(1.0, 4.0).is_worth_it(8, 4, 2.9)
    assert known(1.0, 4.0).is_worth_it(8, 4, 3.0)


def test_rows_and_widths_count_by_powers_of_two() -> None:
    speeds = known(1.0, 4.0, rows=8, width=4)
    assert not speeds.is_worth_it(5, 3, 1.0)
    assert speeds.is_worth_it(9, 4, 1.0)
    assert speeds.is_worth_it(8, 5, 1.0)


def test_one_slow_step_decides_nothing() -> None:
    speeds = known(1.0, 1.2)
    speeds.note(8, 4, 99.0)
    assert speeds.is_worth_it(8, 4, 0.25)


def test_a_kind_that_was_refused_long_enough_gets_another_chance() -> None:
    speeds = known(1.0, 4.0)
    patience = FIRST_PATIENCE
    for _ in range(9):
        assert not any(speeds.is_worth_it(8, 4, 1.0) for _ in range(patience))
        patience = min(2 * patience, MAX_PATIENCE)
        for _ in range(4):
            assert speeds.is_worth_it(8, 4, 1.0)
            speeds.note(8, 4, 4.0)


def test_a_step_lasts_until_its_tokens_are_known_without_what_comes_between() -> None:
    clock = Clock()
    noted: list[tuple[int, int, float]] = []

    class Recorder(StepSpeeds):
        def note(self, rows: int, width: int, seconds: float) -> None:
            noted.append((rows, width, seconds))

    watch = StepWatch(Recorder(clock))
    for width in (1, 4, 1):
        with watch:
            clock.now += 2.0
            watch.know()
            clock.now += 4.0
            watch.know()
            clock.now += 1.0
            watch.start(8, width)
        clock.now += 50.0
    assert noted == [(8, 1, 7.0), (8, 4, 7.0)]
