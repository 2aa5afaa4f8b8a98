"""Steps in which each row of several gets another number of tokens: each answer is the one that the row gets alone."""

import itertools
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models import qwen3

from lmwire_protocol import ChoiceFormat, Generate, RegexFormat
from lmwire_worker.generation.batching import StepSpeeds, uneven
from lmwire_worker.generation.runner import GenerationRunner
from random_model import write_model
from support.nightly import nightly_but
from support.runners.clock import Clock
from support.runners.forced_tokens import TRIP, step_by_step
from support.runners.generation_runners import Answer, Driver, FolderOf, ask, open_runner

pytestmark = pytest.mark.slow

FIELDS: list[dict[str, Any]] = [
    {"format": TRIP},
    {"format": TRIP, "temperature": 1.2},
    {},
    {"format": RegexFormat(pattern="[ab]{3}(-fixed-text-){2}[ab]"), "temperature": 1.0, "repetition_penalty": 1.3},
    {"temperature": 1.0, "top_k": 20, "xtc_probability": 0.5},
    {"format": ChoiceFormat(choices=["a long answer that is forced", "another one that is forced"])},
    {"format": TRIP, "logprobs": True, "top_logprobs": 2},
    {"format": TRIP, "temperature": 1.2, "dry_multiplier": 2, "dry_allowed_length": 1, "min_tokens": 5},
    {"banned_strings": ["a", "e"], "temperature": 1.0},
    {"format": TRIP, "stop": ["ty"]},
]
"""The demands of the rows of one batch."""
PROMPTS = ("Where to?", "Which of the many cities do you like the most?", "x", [7, 8, 9, 7, 8, 9, 7, 8], "Why?")


def _request(index: int, **fields: Any) -> Generate:
    return Generate(prompt=PROMPTS[index % len(PROMPTS)], seed=index, max_tokens=40, cache="off", **fields)


REQUESTS = [_request(index, **fields) for index, fields in enumerate(FIELDS)]


@pytest.fixture(scope="module", params=nightly_but({"qwen3"}, ["qwen3", "llama"]))
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def expected(folder_of: FolderOf, family: str) -> list[Answer]:
    """The answers to `REQUESTS` that a row gets alone, step by step."""
    return step_by_step(open_runner(folder_of(family)), *REQUESTS)


@pytest.fixture(scope="module")
def grows_unevenly() -> Iterator[None]:
    """Let rows grow unevenly, as on a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GenerationRunner, "may_step_unevenly", GenerationRunner.may_pad)
        yield


@pytest.fixture(scope="module")
def runner(folder_of: FolderOf, family: str, grows_unevenly: None) -> GenerationRunner:
    return open_runner(folder_of(family))


@pytest.fixture(scope="module")
def repeating(folder_of: FolderOf, family: str, grows_unevenly: None) -> GenerationRunner:
    """A model with which tokens are proposed from each row's own text, too."""
    return open_runner(folder_of(family), draft_path="builtin:ngram")


@pytest.fixture(scope="module", params=["itself", "another"])
def drafted(
    folder_of: FolderOf, family: str, grows_unevenly: None, tmp_path_factory: pytest.TempPathFactory, request: Any
) -> GenerationRunner:
    """A model whose draft is the model itself, which is always right, or another one, which seldom is."""
    small = tmp_path_factory.mktemp("drafts") / "small"
    another = partial(write_model, small, family, hidden_size=32, num_hidden_layers=1, seed=5)
    return open_runner(folder_of(family), draft_path=str(folder_of(family) if request.param == "itself" else another()))


def count_steps(runner: GenerationRunner, *every: Generate) -> int:
    driver, steps = Driver(runner), 0
    for key, request in enumerate(every):
        driver.add(key, request)
    while driver.running:
        driver.step()
        steps += 1
    return steps


def test_each_answer_is_the_one_that_the_row_gets_alone(runner: GenerationRunner, expected: list[Answer]) -> None:
    assert ask(runner, *REQUESTS) == expected


def said(answers: list[Answer]) -> list[object]:
    """Return what hosts receive, without its division into deltas."""
    return [(answer.token_ids, answer.text, answer.finish_reason, answer.stop) for answer in answers]


def test_so_it_is_with_proposals_from_the_text(repeating: GenerationRunner, expected: list[Answer]) -> None:
    assert said(ask(repeating, *REQUESTS)) == said(expected)


def test_so_it_is_with_proposals_of_a_draft_model(drafted: GenerationRunner, expected: list[Answer]) -> None:
    assert said(ask(drafted, *REQUESTS)) == said(expected)


def test_a_draft_model_that_is_right_saves_steps_of_all_rows(folder_of: FolderOf, grows_unevenly: None) -> None:
    runner = open_runner(folder_of("llama"), draft_path=str(folder_of("llama")))
    every = [Generate(prompt=prompt, max_tokens=50, ignore_eos=True, cache="off") for prompt in PROMPTS]
    assert count_steps(runner, *every) < 25


def test_rows_of_a_format_save_most_of_their_steps(runner: GenerationRunner) -> None:
    every = [Generate(prompt=prompt, max_tokens=60, format=TRIP, cache="off") for prompt in PROMPTS]
    longest = max(len(answer.token_ids) for answer in ask(runner, *every))
    assert count_steps(runner, *every) < longest / 2 + len(every)


def test_rows_that_repeat_themselves_save_steps_together(repeating: GenerationRunner) -> None:
    every = [
        Generate(prompt=[8, 9, 7] * 12, max_tokens=150, ignore_eos=True, logit_bias={7 + index: 80}, cache="off")
        for index in range(3)
    ]
    answers = ask(repeating, *every)
    assert [len(answer.token_ids) for answer in answers] == [150] * 3
    assert count_steps(repeating, *every) < 75


def test_many_holes_move_together_and_change_nothing(
    runner: GenerationRunner, expected: list[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uneven, "MAX_HOLES", 3)
    assert ask(runner, *REQUESTS) == expected


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_rows_join_and_leave_at_any_step(runner: GenerationRunner, expected: list[Answer], steps: int) -> None:
    driver = Driver(runner)
    driver.add(0, REQUESTS[0])
    for key, request in enumerate(REQUESTS[1:], 1):
        driver.add(key, request)
        driver.steps(steps)
    answers = driver.finish()
    assert [answers[key] for key in range(len(expected))] == expected


def test_a_cancel_leaves_the_other_answers_as_they_are(runner: GenerationRunner, expected: list[Answer]) -> None:
    driver = Driver(runner)
    for key, request in enumerate(REQUESTS):
        driver.add(key, request)
    driver.steps(9)
    canceled = min(driver.running)
    driver.remove(canceled)
    answers = driver.finish()
    assert [answers[key] for key in answers if key != canceled] == [
        answer for key, answer in enumerate(expected) if key != canceled
    ]


def test_what_such_steps_compute_is_cached_like_the_rest(runner: GenerationRunner) -> None:
    runner.clear_cache()
    prompts = [[(step * position) % 200 + 5 for position in range(80)] for step in (7, 11, 13)]
    answers = ask(runner, *[Generate(prompt=prompt, max_tokens=60, format=TRIP) for prompt in prompts])
    follow = [
        Generate(prompt=[*prompt, *answer.token_ids, 9, 9], max_tokens=8)
        for prompt, answer in zip(prompts, answers, strict=True)
    ]
    warm = ask(runner, *follow)
    runner.clear_cache()
    assert warm == step_by_step(runner, *follow)


def test_whatever_the_clock_says_the_answers_are_the_same(
    folder_of: FolderOf, family: str, grows_unevenly: None, expected: list[Answer]
) -> None:
    """It decides how wide each step is."""
    chance, now = random.Random(7), itertools.count()
    runner = open_runner(folder_of(family), draft_path="builtin:ngram")
    runner.step_speeds = StepSpeeds(lambda: next(now) + chance.random() ** 9 * 1000)
    runner.discard_batch()
    assert said(ask(runner, *REQUESTS)) == said(expected)


@pytest.mark.parametrize(("wide_s", "is_faster"), [(1.3, True), (30.0, False)])
def test_steps_are_wide_where_the_model_is_fast_at_it(
    folder_of: FolderOf, grows_unevenly: None, monkeypatch: pytest.MonkeyPatch, wide_s: float, is_faster: bool
) -> None:
    clock = Clock()
    compute = qwen3.Model.__call__

    def timed(model: qwen3.Model, inputs: mx.array, **options: Any) -> Any:
        clock.now += 1.0 if inputs.shape[1] == 1 else wide_s
        return compute(model, inputs, **options)

    monkeypatch.setattr(qwen3.Model, "__call__", timed)
    lines = RegexFormat(pattern="([ab]{20}-fixed-text-){9}")
    every = [Generate(prompt=prompt, max_tokens=400, format=lines, cache="off") for prompt in PROMPTS]
    runner = open_runner(folder_of("qwen3"))
    steps = count_steps(runner, *every)
    runner.step_speeds = StepSpeeds(clock)
    runner.discard_batch()
    count_steps(runner, *every)  # so that it knows
    assert (count_steps(runner, *every) < 1.3 * steps) == is_faster
