"""How prompts are sliced, on devices of which only the speed is known: a clock tells what a step takes."""

import itertools
from dataclasses import dataclass, replace
from statistics import mode

import pytest

from lmwire_worker.generation.prefill.policy import (
    ENOUGH,
    FIRST,
    FIRST_PREPARED,
    GAP,
    LADDER,
    LONGEST_S,
    PROBED,
    SOON_S,
    STEPS,
    UNNOTICED_S,
    Pace,
)

FAR = 1_000_000
"""Where a slice more or less does not change how far a token looks back."""
PROMPT = 16_384


@dataclass(frozen=True)
class Device:
    """What a model takes, in seconds."""

    step_s: float = 0.010
    """A token for each of the running answers."""
    fixed_s: float = 0.0
    """A slice, whatever its length."""
    token_s: float = 0.0
    """A token of it."""
    back_s: float = 0.0
    """A token that it looks back at."""

    def slice_s(self, size: int, at: int) -> float:
        return self.fixed_s + size * (self.token_s + self.back_s * (at + size / 2))


@dataclass(frozen=True)
class Slice:
    size: int
    gap_s: float
    """What the step took that it was a part of."""


FAST = Device(step_s=0.001, fixed_s=0.0015, token_s=2e-5, back_s=0.9e-7)
"""A random model of 2 layers and a vocabulary of 512."""
WIDE = replace(FAST, step_s=0.031)
"""The same with a vocabulary of 151,936."""
HEAVY = Device(step_s=0.002, fixed_s=0.020, token_s=2e-5, back_s=1e-8)
"""A slice that takes ten steps before its first token is processed."""


def process(pace: Pace, device: Device, *, running: int = 8, busy: range = range(0)) -> list[Slice]:
    """A prompt's slices. During those of `busy` the device is ten times as slow."""
    slices: list[Slice] = []
    at = 0
    run(pace, device, running)
    while at < PROMPT:
        size = min(pace.slice(running, 1, at), PROMPT - at)
        seconds = device.step_s * bool(running) + device.slice_s(size, at)
        seconds *= 10 if len(slices) in busy else 1
        pace.learn(seconds, running, 1, size, at)
        slices.append(Slice(size, seconds))
        at += size
    return slices


def run(pace: Pace, device: Device, running: int) -> None:
    """Steps without prompts."""
    for _ in range(STEPS if running else 0):
        pace.learn(device.step_s, running, 0, 0, 0)


def settled(pace: Pace, device: Device, *, running: int = 1, prompts: int = 1) -> int:
    """The slice that the pace comes to, far into a prompt."""
    run(pace, device, running)
    for _ in range(5 * PROBED):
        size = pace.slice(running, prompts, FAR)
        pace.learn(device.step_s * bool(running) + device.slice_s(size * prompts, FAR), running, prompts, size, FAR)
    return usual(pace, running, prompts)


def usual(pace: Pace, running: int = 1, prompts: int = 1) -> int:
    """The slice that most are like."""
    return mode(pace.slice(running, prompts, FAR) for _ in range(PROBED))


def first_token_s(slices: list[Slice]) -> float:
    return sum(slice.gap_s for slice in slices)


def later(device: Device) -> float:
    """How much later a prompt's first token comes beside running answers, against alone."""
    return first_token_s(process(Pace(), device)) / first_token_s(process(Pace(), device, running=0))


def longest_gap(device: Device) -> float:
    return max(slice.gap_s for slice in process(Pace(), device))


# What a slice may take.


def test_running_answers_wait_a_few_steps_at_most() -> None:
    size = settled(Pace(), Device(token_s=0.0002))
    assert size == max(step for step in LADDER if step * 0.0002 <= (GAP - 1) * 0.010)


def test_answers_so_fast_that_nobody_notices_wait_longer() -> None:
    size = settled(Pace(), Device(step_s=0.001, token_s=0.0002))
    assert size == max(step for step in LADDER if step * 0.0002 <= UNNOTICED_S - 0.001)


def test_without_running_answers_a_slice_is_as_long_as_a_cancel_may_wait() -> None:
    size = settled(Pace(), Device(token_s=0.0003), running=0)
    assert size == max(step for step in LADDER if step * 0.0003 <= SOON_S)


@pytest.mark.parametrize(("fixed_s", "longest_s"), [(0.002, SOON_S), (0.016, 0.16), (0.050, LONGEST_S)])
def test_it_waits_longer_where_more_than_a_tenth_would_go_to_what_a_slice_costs_anyway(
    fixed_s: float, longest_s: float
) -> None:
    device = Device(fixed_s=fixed_s, token_s=0.0003)
    taken_s = device.slice_s(settled(Pace(), device, running=0), FAR)
    assert 0.65 * longest_s <= taken_s <= 1.05 * longest_s


def test_a_prompt_beside_slow_answers_gets_as_many_of_their_steps() -> None:
    size = settled(Pace(), Device(step_s=0.200, token_s=0.001))
    assert 0.65 * (GAP - 1) * 0.200 <= size * 0.001 <= (GAP - 1) * 0.200


def test_prompts_that_are_processed_together_share_the_time() -> None:
    device = Device(token_s=0.0001)
    assert settled(Pace(), device, prompts=4) <= settled(Pace(), device) / 4


def test_a_prompt_that_fits_is_not_cut_for_the_sake_of_the_ladder() -> None:
    pace, device = Pace(), Device(token_s=0.0001)
    size = settled(pace, device)
    fits = int((GAP - 1) * device.step_s / device.token_s) - 5
    assert size < fits < LADDER[LADDER.index(size) + 1]
    lefts = [pace.slice(1, 1, FAR, 1, left=fits) for _ in range(PROBED - 1)]
    assert mode(lefts) == fits
    assert pace.slice(1, 1, FAR, 1, left=2 * fits) in LADDER


@pytest.mark.parametrize("waiting", [1, 3, 5, 9, 17])
def test_a_gap_may_be_as_many_times_as_long_as_prompts_wait(waiting: int) -> None:
    pace, device = Pace(), Device(token_s=0.0002)
    settled(pace, device)
    size = mode(pace.slice(4, 1, FAR, waiting) for _ in range(PROBED))
    gap_s = min(waiting * GAP * 0.010, SOON_S)
    assert size == max(step for step in LADDER if step * 0.0002 <= gap_s - 0.010)


def test_a_slow_device_gets_the_smallest_slice() -> None:
    assert settled(Pace(), Device(step_s=0.001, token_s=1.0)) == LADDER[0]


def test_most_of_the_time_that_there_is_for_a_slice_is_used() -> None:
    for token_us in range(30, 1000, 7):
        size = settled(Pace(), Device(token_s=token_us * 1e-6))
        assert 0.65 * (GAP - 1) <= size * token_us * 1e-4 <= 1.02 * (GAP - 1)


# What the fixed cost of a slice changes.


def test_beside_very_fast_answers_a_prompt_comes_forward_and_nobody_notices_the_gaps() -> None:
    assert later(FAST) < 1.25
    assert longest_gap(FAST) <= UNNOTICED_S * 1.05


def test_beside_answers_of_a_large_vocabulary_gaps_are_six_steps_at_most() -> None:
    assert later(WIDE) < 1.3, "the answers' tokens alone are a step in 5.5"
    assert longest_gap(WIDE) <= 6 * WIDE.step_s


def test_where_no_slice_is_short_enough_half_of_the_time_goes_to_the_prompt() -> None:
    assert HEAVY.step_s + HEAVY.fixed_s > UNNOTICED_S > 6 * HEAVY.step_s, "not even one token is"
    assert later(HEAVY) < 2.2
    assert longest_gap(HEAVY) <= 2.2 * (HEAVY.step_s + HEAVY.fixed_s)


def test_a_cancel_waits_longer_rather_than_that_a_prompt_makes_no_progress() -> None:
    device = Device(fixed_s=LONGEST_S, token_s=0.001)
    taken = first_token_s(process(Pace(), device, running=0))
    assert taken < 3 * PROMPT * device.token_s


@pytest.mark.parametrize("busy", [range(10, 30), range(47, 67)])
@pytest.mark.parametrize("device", [FAST, WIDE, HEAVY])
def test_once_a_busy_machine_is_free_again_all_is_as_before(device: Device, busy: range) -> None:
    pace, undisturbed = Pace(), Pace()
    process(pace, device, busy=busy)
    process(undisturbed, device)
    after, before = process(pace, device), process(undisturbed, device)
    assert first_token_s(after) < 1.05 * first_token_s(before)
    assert max(slice.gap_s for slice in after) < 1.5 * max(slice.gap_s for slice in before)


# How many prompts are processed together.


def test_until_something_is_known_prompts_are_together_that_keep_most_devices_busy() -> None:
    assert Pace().together(running=0, waiting=8) == ENOUGH


def test_prompts_are_together_that_take_no_longer_than_a_first_token_may_wait_for_others() -> None:
    pace, device = Pace(), Device(token_s=1e-5)
    settled(pace, device, running=0)
    assert pace.together(running=0, waiting=8) == pytest.approx(SOON_S / device.token_s, rel=0.01)


def test_beside_running_answers_no_more_prompts_are_together_than_a_slice_may_take() -> None:
    pace, device = Pace(), Device(token_s=1e-5)
    settled(pace, device, running=4)
    assert pace.together(running=4, waiting=1) == pytest.approx((GAP - 1) * device.step_s / device.token_s, rel=0.01)


def test_a_slow_device_is_kept_busy_too() -> None:
    pace, device = Pace(), Device(fixed_s=0.3, token_s=1e-4)
    settled(pace, device, running=0)
    assert pace.together(running=0, waiting=8) == ENOUGH


# How slices change.


def test_slices_grow_step_by_step_and_stay_on_the_ladder() -> None:
    pace = Pace()
    sizes = []
    for _ in range(12):
        sizes.append(pace.slice(0, 1, sum(sizes)))
        pace.learn(1e-6 * sizes[-1], 0, 1, sizes[-1], sum(sizes[:-1]))
    assert sizes[0] == FIRST and sizes[-1] == LADDER[-1]
    assert all(later <= 2 * earlier for earlier, later in itertools.pairwise(sizes))
    assert set(sizes) <= set(LADDER)


def test_slices_shrink_as_a_prompt_grows_and_each_token_costs_more() -> None:
    sizes = [slice.size for slice in process(Pace(), FAST)]
    assert 10 * sizes[-2] < max(sizes)


@pytest.mark.parametrize("device", [FAST, WIDE, HEAVY])
def test_few_lengths_are_used_since_some_devices_compile_kernels_for_each(device: Device) -> None:
    pace = Pace()
    process(pace, device)
    assert len({slice.size for slice in process(pace, device)[:-1]}) <= 12


@pytest.mark.parametrize("token_s", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("back_s", [0.0, 1e-8, 1e-7])
def test_gaps_are_six_steps_at_most_however_the_cost_of_a_token_grows(token_s: float, back_s: float) -> None:
    device = Device(step_s=0.030, token_s=token_s, back_s=back_s)
    pace = Pace()
    for _ in range(3):
        *_, second, _ = sorted(slice.gap_s for slice in process(pace, device))
        assert second <= 6 * device.step_s, "hardly one is longer"


def test_a_step_that_was_late_by_accident_changes_nothing() -> None:
    pace = Pace()
    before = settled(pace, Device(token_s=0.0002))
    for _ in range(STEPS // 2):
        pace.learn(1.0, 1, 0, 0, 0)
    assert usual(pace) == before


def test_the_rest_of_a_prompt_says_nothing_about_whole_slices() -> None:
    pace = Pace()
    before = settled(pace, Device(token_s=0.0002))
    pace.learn(0.015, 1, 1, 3, FAR)
    assert usual(pace) == before


# Devices that prepare their kernels for each shape.


@pytest.fixture
def prepares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes this device for such a one."""
    monkeypatch.setattr("lmwire_worker.generation.prefill.policy.prepares_each_shape", lambda: True)


@pytest.mark.usefixtures("prepares")
def test_the_first_slice_of_a_shape_tells_nothing_where_it_has_kernels_prepared() -> None:
    pace, device = Pace(), Device(token_s=0.0002)
    before = settled(pace, device)
    pace.learn(1.0, 1, 3, before, FAR)
    assert usual(pace) == before
    pace.learn(1.0, 1, 3, before, FAR)
    assert usual(pace) < before


@pytest.mark.usefixtures("prepares")
def test_there_a_prompt_is_not_begun_in_many_short_slices() -> None:
    pace = Pace()
    assert pace.slice(0, 1, 0) == FIRST_PREPARED
    pace.learn(1.0, 0, 1, FIRST_PREPARED, 0)
    assert pace.slice(0, 1, 0) == FIRST_PREPARED
