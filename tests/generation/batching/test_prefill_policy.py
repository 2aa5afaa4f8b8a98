"""The choice of chunks, on simulated devices: a clock gives the duration of each step."""

import itertools
import math
from dataclasses import dataclass, replace
from statistics import mode

import pytest

from lmwire_worker.generation.prefill_policy import (
    CHUNK_SIZES,
    FIRST_CHUNK,
    FIRST_CHUNK_PER_SHAPE,
    MAX_CHUNK_S,
    MAX_LONE_CHUNK_S,
    MAX_TOKEN_GAP_STEPS,
    PROBE_INTERVAL,
    SATURATING_TOKENS,
    STEP_HISTORY,
    TARGET_CHUNK_S,
    UNNOTICEABLE_GAP_S,
    PrefillPolicy,
)

FAR = 1_000_000
"""A position at which one chunk hardly changes the context."""
PROMPT = 16_384


@dataclass(frozen=True)
class Device:
    """The costs of a model, in seconds."""

    step_s: float = 0.010
    """A token for each of the running answers."""
    fixed_s: float = 0.0
    """A slice, whatever its length."""
    token_s: float = 0.0
    """A token of it."""
    back_s: float = 0.0
    """A token that it looks back at."""

    def chunk_s(self, size: int, at: int) -> float:
        return self.fixed_s + size * (self.token_s + self.back_s * (at + size / 2))


@dataclass(frozen=True)
class Chunk:
    size: int
    gap_s: float
    """Duration of its step."""


FAST = Device(step_s=0.001, fixed_s=0.0015, token_s=2e-5, back_s=0.9e-7)
"""A random model of 2 layers and a vocabulary of 512."""
WIDE = replace(FAST, step_s=0.031)
"""The same with a vocabulary of 151,936."""
HEAVY = Device(step_s=0.002, fixed_s=0.020, token_s=2e-5, back_s=1e-8)
"""A slice that takes ten steps before its first token is processed."""


def process(policy: PrefillPolicy, device: Device, *, running: int = 8, busy: range = range(0)) -> list[Chunk]:
    """A prompt's slices. During those of `busy` the device is ten times as slow."""
    chunks: list[Chunk] = []
    at = 0
    run(policy, device, running)
    while at < PROMPT:
        size = min(policy.chunk_size(running, 1, at), PROMPT - at)
        seconds = device.step_s * bool(running) + device.chunk_s(size, at)
        seconds *= 10 if len(chunks) in busy else 1
        policy.record_step(seconds, running, 1, size, at)
        chunks.append(Chunk(size, seconds))
        at += size
    return chunks


def run(policy: PrefillPolicy, device: Device, running: int) -> None:
    """Steps without prompts."""
    for _ in range(STEP_HISTORY if running else 0):
        policy.record_step(device.step_s, running, 0, 0, 0)


def settled(policy: PrefillPolicy, device: Device, *, running: int = 1, prompts: int = 1, waiting: int = 1) -> int:
    """The slice that the pace comes to, far into a prompt."""
    run(policy, device, running)
    for _ in range(5 * PROBE_INTERVAL):
        size = policy.chunk_size(running, prompts, FAR, waiting)
        policy.record_step(
            device.step_s * bool(running) + device.chunk_s(size * prompts, FAR), running, prompts, size, FAR
        )
    return usual(policy, running, prompts, waiting)


def usual(policy: PrefillPolicy, running: int = 1, prompts: int = 1, waiting: int = 1) -> int:
    """The slice that most are like."""
    return mode(policy.chunk_size(running, prompts, FAR, waiting) for _ in range(PROBE_INTERVAL))


def first_token_s(chunks: list[Chunk]) -> float:
    return sum(chunk.gap_s for chunk in chunks)


def later(device: Device) -> float:
    """Return how many times later a prompt's first token comes beside running answers than alone."""
    return first_token_s(process(PrefillPolicy(), device)) / first_token_s(process(PrefillPolicy(), device, running=0))


def longest_gap(device: Device) -> float:
    return max(chunk.gap_s for chunk in process(PrefillPolicy(), device))


# What a slice may take.


def test_running_answers_wait_a_few_steps_at_most() -> None:
    size = settled(PrefillPolicy(), Device(token_s=0.0002))
    assert size == max(step for step in CHUNK_SIZES if step * 0.0002 <= (MAX_TOKEN_GAP_STEPS - 1) * 0.010)


def test_answers_so_fast_that_nobody_notices_wait_longer() -> None:
    size = settled(PrefillPolicy(), Device(step_s=0.001, token_s=0.0002))
    assert size == max(step for step in CHUNK_SIZES if step * 0.0002 <= UNNOTICEABLE_GAP_S - 0.001)


def test_without_running_answers_a_chunk_is_as_long_as_another_prompt_may_wait() -> None:
    size = settled(PrefillPolicy(), Device(token_s=0.0003), running=0)
    assert size == max(step for step in CHUNK_SIZES if step * 0.0003 <= TARGET_CHUNK_S)


@pytest.mark.parametrize(("fixed_s", "longest_s"), [(0.002, TARGET_CHUNK_S), (0.016, 0.16), (0.050, MAX_CHUNK_S)])
def test_a_chunk_is_longer_if_its_fixed_cost_would_exceed_a_tenth(fixed_s: float, longest_s: float) -> None:
    device = Device(fixed_s=fixed_s, token_s=0.0003)
    taken_s = device.chunk_s(settled(PrefillPolicy(), device, running=0, waiting=2), FAR)
    assert 0.65 * longest_s <= taken_s <= 1.05 * longest_s


@pytest.mark.parametrize("fixed_s", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("token_s", [0.0003, 0.004])
def test_a_prompt_alone_takes_hardly_longer_than_in_the_longest_chunks(fixed_s: float, token_s: float) -> None:
    policy, device = PrefillPolicy(), Device(fixed_s=fixed_s, token_s=token_s)
    process(policy, device, running=0)
    chunks = process(policy, device, running=0)
    longest = CHUNK_SIZES[-1]
    assert first_token_s(chunks) <= 1.05 * PROMPT / longest * device.chunk_s(longest, 0)
    assert max(chunk.gap_s for chunk in chunks) <= 1.05 * MAX_LONE_CHUNK_S


def test_a_prompt_beside_slow_answers_gets_as_many_of_their_steps() -> None:
    size = settled(PrefillPolicy(), Device(step_s=0.200, token_s=0.001))
    assert 0.65 * (MAX_TOKEN_GAP_STEPS - 1) * 0.200 <= size * 0.001 <= (MAX_TOKEN_GAP_STEPS - 1) * 0.200


def test_prompts_that_are_processed_together_share_the_time() -> None:
    device = Device(token_s=0.0001)
    assert settled(PrefillPolicy(), device, prompts=4) <= settled(PrefillPolicy(), device) / 4


def test_a_prompt_that_fits_is_not_cut_for_the_sake_of_the_ladder() -> None:
    policy, device = PrefillPolicy(), Device(token_s=0.0001)
    size = settled(policy, device)
    fits = int((MAX_TOKEN_GAP_STEPS - 1) * device.step_s / device.token_s) - 5
    assert size < fits < CHUNK_SIZES[CHUNK_SIZES.index(size) + 1]
    sizes = [policy.chunk_size(1, 1, FAR, 1, remaining=fits) for _ in range(PROBE_INTERVAL - 1)]
    assert mode(sizes) == fits
    assert policy.chunk_size(1, 1, FAR, 1, remaining=2 * fits) in CHUNK_SIZES


@pytest.mark.parametrize("waiting", [1, 3, 5, 9, 17])
def test_a_gap_may_be_as_many_times_as_long_as_prompts_wait(waiting: int) -> None:
    policy, device = PrefillPolicy(), Device(token_s=0.0002)
    settled(policy, device)
    size = mode(policy.chunk_size(4, 1, FAR, waiting) for _ in range(PROBE_INTERVAL))
    gap_s = min(waiting * MAX_TOKEN_GAP_STEPS * 0.010, TARGET_CHUNK_S)
    assert size == max(step for step in CHUNK_SIZES if step * 0.0002 <= gap_s - 0.010)


def test_a_slow_device_gets_the_smallest_chunk() -> None:
    assert settled(PrefillPolicy(), Device(step_s=0.001, token_s=1.0)) == CHUNK_SIZES[0]


def test_most_of_the_time_for_a_chunk_is_used() -> None:
    for token_us in range(30, 1000, 7):
        size = settled(PrefillPolicy(), Device(token_s=token_us * 1e-6))
        assert 0.65 * (MAX_TOKEN_GAP_STEPS - 1) <= size * token_us * 1e-4 <= 1.02 * (MAX_TOKEN_GAP_STEPS - 1)


# What the fixed cost of a slice changes.


def test_beside_very_fast_answers_a_prompt_comes_forward_and_nobody_notices_the_gaps() -> None:
    assert later(FAST) < 1.25
    assert longest_gap(FAST) <= UNNOTICEABLE_GAP_S * 1.05


def test_beside_answers_of_a_large_vocabulary_gaps_are_six_steps_at_most() -> None:
    assert later(WIDE) < 1.3, "the answers' tokens alone are a step in 5.5"
    assert longest_gap(WIDE) <= 6 * WIDE.step_s


def test_where_no_chunk_is_short_enough_half_of_the_time_goes_to_the_prompt() -> None:
    assert HEAVY.step_s + HEAVY.fixed_s > UNNOTICEABLE_GAP_S > 6 * HEAVY.step_s, "not even one token is"
    assert later(HEAVY) < 2.2
    assert longest_gap(HEAVY) <= 2.2 * (HEAVY.step_s + HEAVY.fixed_s)


def test_another_prompt_waits_longer_rather_than_that_a_prompt_makes_no_progress() -> None:
    device = Device(fixed_s=MAX_CHUNK_S, token_s=0.001)
    taken = first_token_s(process(PrefillPolicy(), device, running=0))
    assert taken < 3 * PROMPT * device.token_s


@pytest.mark.parametrize("busy", [range(10, 30), range(47, 67)])
@pytest.mark.parametrize("device", [FAST, WIDE, HEAVY])
def test_once_a_busy_machine_is_free_again_all_is_as_before(device: Device, busy: range) -> None:
    policy, undisturbed = PrefillPolicy(), PrefillPolicy()
    process(policy, device, busy=busy)
    process(undisturbed, device)
    after, before = process(policy, device), process(undisturbed, device)
    assert first_token_s(after) < 1.05 * first_token_s(before)
    assert max(chunk.gap_s for chunk in after) < 1.5 * max(chunk.gap_s for chunk in before)


# How many prompts are processed together.


def test_before_any_measurement_a_batch_of_prompts_saturates_most_devices() -> None:
    assert PrefillPolicy().max_batch_tokens(running=0, waiting=8) == SATURATING_TOKENS


def test_a_batch_of_prompts_takes_no_longer_than_a_first_token_may_wait() -> None:
    policy, device = PrefillPolicy(), Device(token_s=1e-5)
    settled(policy, device, running=0)
    assert policy.max_batch_tokens(running=0, waiting=8) == pytest.approx(TARGET_CHUNK_S / device.token_s, rel=0.01)


def test_beside_running_answers_a_batch_of_prompts_takes_no_longer_than_a_chunk_may() -> None:
    policy, device = PrefillPolicy(), Device(token_s=1e-5)
    settled(policy, device, running=4)
    assert policy.max_batch_tokens(running=4, waiting=1) == pytest.approx(
        (MAX_TOKEN_GAP_STEPS - 1) * device.step_s / device.token_s, rel=0.01
    )


def test_a_slow_device_is_kept_busy_too() -> None:
    policy, device = PrefillPolicy(), Device(fixed_s=0.3, token_s=1e-4)
    settled(policy, device, running=0)
    assert policy.max_batch_tokens(running=0, waiting=8) == SATURATING_TOKENS


# How slices change.


def test_chunks_grow_step_by_step_and_stay_on_the_ladder() -> None:
    policy = PrefillPolicy()
    sizes = []
    for _ in range(12):
        sizes.append(policy.chunk_size(0, 1, sum(sizes)))
        policy.record_step(1e-6 * sizes[-1], 0, 1, sizes[-1], sum(sizes[:-1]))
    assert sizes[0] == FIRST_CHUNK and sizes[-1] == CHUNK_SIZES[-1]
    assert all(later <= 2 * earlier for earlier, later in itertools.pairwise(sizes))
    assert set(sizes) <= set(CHUNK_SIZES)


def test_chunks_shrink_as_a_prompt_grows_and_each_token_costs_more() -> None:
    sizes = [chunk.size for chunk in process(PrefillPolicy(), FAST)]
    assert 10 * sizes[-2] < max(sizes)


@pytest.mark.parametrize("device", [FAST, WIDE, HEAVY])
def test_few_lengths_are_used_since_some_devices_compile_kernels_for_each(device: Device) -> None:
    policy = PrefillPolicy()
    process(policy, device)
    assert len({chunk.size for chunk in process(policy, device)[:-1]}) <= 12


@pytest.mark.parametrize("token_s", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("back_s", [0.0, 1e-8, 1e-7])
def test_gaps_are_six_steps_at_most_however_the_cost_of_a_token_grows(token_s: float, back_s: float) -> None:
    device = Device(step_s=0.030, token_s=token_s, back_s=back_s)
    policy = PrefillPolicy()
    for _ in range(3):
        *_, second, _ = sorted(chunk.gap_s for chunk in process(policy, device))
        assert second <= 6 * device.step_s, "hardly one is longer"


def test_a_step_that_was_late_by_accident_changes_nothing() -> None:
    policy = PrefillPolicy()
    before = settled(policy, Device(token_s=0.0002))
    for _ in range(STEP_HISTORY // 2):
        policy.record_step(1.0, 1, 0, 0, 0)
    assert usual(policy) == before


def test_the_last_chunk_of_a_prompt_is_not_measured() -> None:
    policy = PrefillPolicy()
    before = settled(policy, Device(token_s=0.0002))
    policy.record_step(0.015, 1, 1, 3, FAR)
    assert usual(policy) == before


# Devices that prepare their kernels for each shape.


@pytest.fixture
def prepares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the policy treat this device as one that compiles each shape."""
    monkeypatch.setattr("lmwire_worker.generation.prefill_policy.compiles_each_shape", lambda: True)


@pytest.mark.usefixtures("prepares")
def test_the_first_chunk_of_a_shape_is_not_measured_where_kernels_are_prepared() -> None:
    policy, device = PrefillPolicy(), Device(token_s=0.00005)
    before = settled(policy, device)
    policy.record_step(1.0, 1, 3, before, FAR)
    assert usual(policy) == before
    policy.record_step(1.0, 1, 3, before, FAR)
    assert usual(policy) < before


@pytest.mark.usefixtures("prepares")
def test_where_kernels_are_compiled_a_prompt_does_not_start_with_many_short_chunks() -> None:
    policy = PrefillPolicy()
    assert policy.chunk_size(0, 1, 0) == FIRST_CHUNK_PER_SHAPE
    policy.record_step(1.0, 0, 1, FIRST_CHUNK_PER_SHAPE, 0)
    assert policy.chunk_size(0, 1, 0) == FIRST_CHUNK_PER_SHAPE


@pytest.mark.usefixtures("prepares")
@pytest.mark.parametrize(("prompts", "least"), [(1, 256), (3, 96), (16, 16)])
def test_where_kernels_are_compiled_no_chunk_is_shorter_than_what_costs_as_much(prompts: int, least: int) -> None:
    assert settled(PrefillPolicy(), Device(step_s=0.001, token_s=1.0), prompts=prompts) == least


# What a prompt takes in all.


def test_the_time_of_a_prompt_is_that_of_its_chunks() -> None:
    device = Device(fixed_s=0.005, token_s=0.0003)
    policy = PrefillPolicy()
    assert policy.prefill_s(1000, 0) == math.inf
    seconds = first_token_s(process(policy, device, running=0))
    assert policy.prefill_s(PROMPT, 0) == pytest.approx(seconds, rel=0.1)


def test_waiting_is_worth_a_chunk_if_it_saves_more_than_the_fixed_cost_and_a_step() -> None:
    policy, device = PrefillPolicy(), Device(fixed_s=0.008, token_s=0.0003)
    assert [policy.is_worth_a_chunk(tokens, 0) for tokens in (SATURATING_TOKENS - 1, SATURATING_TOKENS)] == [
        False,
        True,
    ]
    for size in (32, 64, 128):
        policy.record_step(device.chunk_s(size, 0), 0, 1, size, 0)
    assert [policy.is_worth_a_chunk(tokens, 0) for tokens in (26, 27)] == [False, True]
    run(policy, device, 8)
    assert [policy.is_worth_a_chunk(tokens, 8) for tokens in (59, 61)] == [False, True]
