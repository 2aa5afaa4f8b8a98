"""The times of a request while it runs, which the server takes."""

from lmwire import TokenDelta
from lmwire_http.inference.timings import Timings, TimingsSoFar


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def token() -> TokenDelta:
    return TokenDelta(id="", token="a", token_ids=[1])


def of_answer(timings: Timings) -> tuple[int, float, float]:
    return timings.predicted_n, timings.predicted_ms, timings.predicted_per_second


def of_prompt(timings: Timings) -> tuple[int, int, float, float]:
    return timings.cache_n, timings.prompt_n, timings.prompt_ms, timings.prompt_per_second


def test_the_time_until_the_first_token_is_the_prompts_and_the_rest_is_the_answers() -> None:
    clock = Clock()
    so_far = TimingsSoFar(clock)
    clock.now_s = 10.0  # the request was queued
    so_far.note_prompt(0, 20, 120)
    clock.now_s = 11.0
    so_far.note_prompt(0, 80, 120)
    clock.now_s = 12.0
    so_far.note_delta(token())
    assert of_prompt(so_far.timings()) == (20, 100, 2000.0, 50.0)
    assert of_answer(so_far.timings()) == (1, 0.0, 0.0)
    clock.now_s = 12.5
    so_far.note_delta(token())
    assert of_prompt(so_far.timings()) == (20, 100, 2000.0, 50.0)
    assert of_answer(so_far.timings()) == (2, 500.0, 4.0)


def test_several_prompts_are_added_up() -> None:
    clock = Clock()
    so_far = TimingsSoFar(clock)
    for prompt in range(2):
        so_far.note_prompt(prompt, 0, 10)
        clock.now_s += 1.0
        so_far.note_delta(token())
        clock.now_s += 0.5
        so_far.note_delta(token())
    assert of_prompt(so_far.timings()) == (0, 20, 2000.0, 10.0)
    assert of_answer(so_far.timings()) == (4, 1000.0, 4.0)


def test_a_prompt_without_progress_takes_no_time() -> None:
    so_far = TimingsSoFar()
    so_far.note_delta(token())
    assert of_prompt(so_far.timings()) == (0, 0, 0.0, 0.0)
