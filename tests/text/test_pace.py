"""How prompts are sliced."""

import itertools

from lmwire_worker.text.pace import GAP, LADDER, LONGEST_S, Pace


def learned(pace: Pace, *, decode_s: float, token_s: float, running: int = 1, prompts: int = 1) -> int:
    """The slice that the pace settles on, on a device of this speed."""
    size = 0
    for _ in range(40):
        if running:
            pace.learn(decode_s, running, 0)
        size = pace.slice(running, prompts)
        pace.learn(decode_s * bool(running) + token_s * size * prompts, running, size * prompts)
    return size


def test_running_answers_wait_a_few_steps_at_most() -> None:
    size = learned(Pace(), decode_s=0.010, token_s=0.0002)
    assert size == max(step for step in LADDER if step * 0.0002 <= (GAP - 1) * 0.010)


def test_without_running_answers_a_slice_is_as_long_as_a_cancel_may_wait() -> None:
    size = learned(Pace(), decode_s=0, token_s=0.0003, running=0)
    assert size == max(step for step in LADDER if step * 0.0003 <= LONGEST_S)


def test_prompts_that_are_processed_together_share_the_time() -> None:
    alone = learned(Pace(), decode_s=0.010, token_s=0.0001)
    assert learned(Pace(), decode_s=0.010, token_s=0.0001, prompts=4) <= alone / 4


def test_slices_grow_step_by_step_and_stay_on_the_ladder() -> None:
    pace = Pace()
    sizes = []
    for _ in range(12):
        sizes.append(pace.slice(0, 1))
        pace.learn(1e-6 * sizes[-1], 0, sizes[-1])
    assert sizes[0] == LADDER[0] and sizes[-1] == LADDER[-1]
    assert all(later <= 2 * earlier for earlier, later in itertools.pairwise(sizes))
    assert set(sizes) <= set(LADDER)


def test_a_slow_device_gets_the_smallest_slice() -> None:
    assert learned(Pace(), decode_s=0.001, token_s=1.0) == LADDER[0]
