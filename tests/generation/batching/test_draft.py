"""A draft model: it changes how many tokens a step gives, and nothing else."""

import itertools
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from mlx_lm.models.llama import Model

from lmwire_protocol import Generate, JsonSchemaFormat, RegexFormat
from lmwire_worker.engine.interface import TokenDelta
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from random_model import write_model
from support.nightly import nightly_but
from support.runners.generation_runners import Answer, Driver, FolderOf, ask, choices, open_runner, refusal

pytestmark = pytest.mark.slow

REQUESTS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 1.0},
    "filtered": {"temperature": 0.9, "top_p": 0.8, "min_p": 0.02},
    "xtc": {"temperature": 1.0, "xtc_probability": 0.5, "xtc_threshold": 0.05},
    "cool": {"temperature": 0.2},
    "penalties": {"repetition_penalty": 1.3, "presence_penalty": 0.4, "frequency_penalty": 0.3, "penalty_window": 9},
    "dry": {"dry_multiplier": 1.5, "dry_allowed_length": 1},
    "banned": {"banned_strings": ["a", "e", "i"], "temperature": 1.0},
    "bias": {"logit_bias": {60: 4.0, 70: -100.0}},
    "no end": {"ignore_eos": True},
    "a late end": {"min_tokens": 9, "temperature": 1.0},
    "stops": {"stop": ["a", "ki"], "ignore_eos": True},
    "a pattern": {"format": RegexFormat(pattern="([a-c]{3}-){5}")},
    "a schema": {"format": JsonSchemaFormat(schema={"type": "array", "items": {"type": "integer"}, "maxItems": 3})},
    "one token": {"max_tokens": 1},
    "two tokens": {"max_tokens": 2},
    "no tokens": {"max_tokens": 0},
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("draft") / "small", "llama", hidden_size=32, num_hidden_layers=1, seed=5)


@pytest.fixture(scope="module")
def plain(folder_of: FolderOf) -> GenerationRunner:
    return open_runner(folder_of("llama"))


@pytest.fixture(scope="module")
def drafted(folder_of: FolderOf, small: Path) -> GenerationRunner:
    """Its draft is another model, of whose proposals few are accepted."""
    return open_runner(folder_of("llama"), draft_path=str(small))


@pytest.fixture(scope="module")
def own(folder_of: FolderOf) -> GenerationRunner:
    """Its draft is the model itself, whose proposals are what greedy answers are."""
    return open_runner(folder_of("llama"), draft_path=str(folder_of("llama")))


def said(answer: Answer) -> tuple[object, ...]:
    """Return everything that a host receives of an answer, without its division into deltas."""
    return answer.token_ids, answer.text, answer.generated, answer.finish_reason, answer.stop


def accepted(runner: GenerationRunner, request: Generate) -> tuple[int, int, int]:
    """Return (tokens, drafted tokens, steps with tokens) of an answer."""
    runner.add(0, request, 0)
    tokens = drafted = steps = 0
    while True:
        deltas = [outcome for outcome in runner.step() if isinstance(outcome, TokenDelta)]
        tokens += sum(delta.generated for delta in deltas)
        drafted += sum(delta.drafted for delta in deltas)
        steps += bool(deltas)
        if deltas and deltas[-1].finish_reason:
            return tokens, drafted, steps


CASES = [(runner, name) for runner in ("own", "drafted") for name in REQUESTS]
SAMPLE = {
    *(("own", name) for name in REQUESTS),
    *(("drafted", name) for name in ("greedy", "sampled", "penalties", "banned", "stops", "a pattern")),
}
"""All that can be asked for, and what goes on from the tokens before it where few proposals are accepted."""


@pytest.mark.parametrize("case", nightly_but(SAMPLE, CASES), ids="-".join)
def test_an_answer_is_the_one_without_a_draft(
    case: tuple[str, str], plain: GenerationRunner, request: pytest.FixtureRequest
) -> None:
    runner, name = case
    with_draft: GenerationRunner = request.getfixturevalue(runner)
    prompts: tuple[list[int], ...] = ([10, 20, 30, 40], [7], list(range(60, 160)))
    fields: dict[str, Any] = {"max_tokens": 16, **REQUESTS[name]}
    for seed, prompt in enumerate(prompts):
        asked = Generate(prompt=prompt, cache="off", **fields)
        assert said(*ask(with_draft, asked, seeds=[seed])) == said(*ask(plain, asked, seeds=[seed]))


def test_log_probabilities_are_the_models_own(
    plain: GenerationRunner, drafted: GenerationRunner, own: GenerationRunner
) -> None:
    asked = Generate(prompt=[10, 20, 30], max_tokens=20, logprobs=True, top_logprobs=3, temperature=0.7)
    (wanted,) = ask(plain, asked)
    for runner in (drafted, own):
        (answer,) = ask(runner, asked)
        assert [described.token_id for described in answer.logprobs] == answer.token_ids == wanted.token_ids
        for got, want in zip(answer.logprobs, wanted.logprobs, strict=True):
            assert got.logprob == pytest.approx(want.logprob, abs=1e-4)
            assert [other.token_id for other in got.top] == [other.token_id for other in want.top]


def test_a_draft_that_is_right_is_taken_at_its_word(own: GenerationRunner) -> None:
    tokens, drafted, steps = accepted(own, Generate(prompt=[10, 20, 30], max_tokens=40, ignore_eos=True))
    assert (tokens, drafted) == (40, 32)
    assert steps < 12


def test_a_draft_that_is_wrong_costs_steps_and_nothing_else(drafted: GenerationRunner) -> None:
    tokens, count, steps = accepted(drafted, Generate(prompt=[10, 20, 30], max_tokens=40, temperature=1.5))
    assert tokens == count + steps
    assert count < tokens / 2


def test_without_a_draft_nothing_was_drafted(plain: GenerationRunner) -> None:
    assert accepted(plain, Generate(prompt=[10, 20, 30], max_tokens=5, ignore_eos=True))[1] == 0


@pytest.mark.parametrize("length", [1, 2, 150])
def test_each_choice_is_what_its_own_seed_gives(
    length: int, plain: GenerationRunner, drafted: GenerationRunner
) -> None:
    prompt = [(7 * n) % 200 + 5 for n in range(length)]
    asked = Generate(prompt=prompt, n=4, temperature=1.0, max_tokens=20)
    wanted = choices(plain, asked, seed=11)
    assert [said(answer) for answer in choices(drafted, asked, seed=11)] == [said(answer) for answer in wanted]


def test_with_max_tokens_0_every_choice_is_empty(drafted: GenerationRunner) -> None:
    answers = choices(drafted, Generate(prompt="ka lo", n=3, max_tokens=0))
    assert [(answer.finish_reason, answer.token_ids) for answer in answers] == [("length", [])] * 3


@pytest.mark.parametrize("name", ["drafted", "own"])
def test_answers_that_run_together_are_the_same(
    name: str, plain: GenerationRunner, request: pytest.FixtureRequest
) -> None:
    runner: GenerationRunner = request.getfixturevalue(name)
    asked = [Generate(prompt=f"another {n} " * 9, max_tokens=15 + 9 * n, temperature=0.8) for n in range(3)]
    together = ask(runner, *asked, seeds=(1, 2, 3))
    assert [said(answer) for answer in together] == [said(answer) for answer in ask(plain, *asked, seeds=(1, 2, 3))]


@pytest.mark.parametrize("steps", nightly_but({1, 4}, [0, 1, 2, 4, 6]))
def test_a_cancel_leaves_the_next_answer_as_it_is(steps: int, plain: GenerationRunner, own: GenerationRunner) -> None:
    asked = Generate(prompt=[10, 20, 30], max_tokens=20, ignore_eos=True)
    driver = Driver(own)
    driver.add(0, Generate(prompt=[9] * 40, n=2, max_tokens=50, ignore_eos=True))
    driver.add(1, asked)
    driver.steps(steps)
    driver.remove(0)
    assert said(driver.finish()[1]) == said(ask(plain, asked)[0])


def test_a_long_prompt_is_prefilled_in_chunks_and_reports_progress(
    own: GenerationRunner, plain: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 512)  # a fast machine would need one chunk
    asked = Generate(prompt=[(5 * n) % 260 for n in range(1500)], max_tokens=5, cache="off")
    (answer,) = ask(own, asked)
    assert answer.prefilled == sorted(set(answer.prefilled))
    assert answer.prefilled[-2:] == [(1499, 1500), (1500, 1500)]
    assert len(answer.prefilled) > 2
    assert said(answer) == said(ask(plain, asked)[0])


def test_what_is_cached_changes_no_answer(folder_of: FolderOf, small: Path, plain: GenerationRunner) -> None:
    runner = open_runner(folder_of("llama"), draft_path=str(small))
    draw = random.Random(3)
    conversation = [draw.randrange(5, 260) for _ in range(20)]
    for turn in range(8):
        fields: dict[str, Any] = {
            "prompt": conversation,
            "max_tokens": draw.randrange(1, 25),
            "temperature": draw.choice([0, 1]),
        }
        admitted = runner.add(0, Generate(**fields), turn)
        runner.start_waiting()
        runner.remove(0)
        assert (admitted.cached_tokens > 0) == (turn > 0)
        (answer,) = ask(runner, Generate(**fields), seeds=[turn])
        (wanted,) = ask(plain, Generate(cache="off", **fields), seeds=[turn])
        assert said(answer) == said(wanted)
        branch = conversation[: draw.randrange(10, 20)] if turn % 3 == 2 else conversation
        conversation = [*branch, *answer.token_ids, turn + 9]
    stats = runner.cache_stats()
    assert stats is not None
    assert stats.mismatches == 0


@pytest.mark.parametrize("failing", nightly_but({1, 4, 9}, range(1, 16)))
def test_a_failure_in_either_model_changes_no_answer(
    failing: int, own: GenerationRunner, plain: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Generate(prompt=[10, 20, 30], max_tokens=15, ignore_eos=True, n=2, temperature=0.3, cache="off")
    wanted = choices(plain, asked)
    run, calls = Model.__call__, itertools.count(1)

    def fail_once(model: Model, *arguments: Any, **named: Any) -> Any:
        if next(calls) == failing:
            raise RuntimeError("a bad moment")
        return run(model, *arguments, **named)

    monkeypatch.setattr(Model, "__call__", fail_once)
    assert [said(answer) for answer in choices(own, asked)] == [said(answer) for answer in wanted]
    assert next(calls) > failing


@pytest.mark.parametrize("family", ["gemma3_text", "mamba", "qwen3_next"])
def test_a_draft_is_refused_where_tokens_cannot_be_taken_back(family: str, folder_of: FolderOf) -> None:
    for error in (
        refusal(folder_of(family), draft_path=str(folder_of("llama"))),
        refusal(folder_of("llama"), draft_path=str(folder_of(family))),
    ):
        assert (error.code, error.field) == ("unsupported", "draft_path")
        assert "Cache" in error.message


def test_a_draft_is_refused_beside_kv_bits(tmp_path: Path) -> None:
    wide = write_model(tmp_path / "wide", "llama", head_dim=32)
    error = refusal(wide, draft_path=str(wide), kv_bits=8)
    assert (error.code, error.field) == ("unsupported", "draft_path")


def test_a_draft_that_is_not_there_is_named(folder_of: FolderOf, tmp_path: Path) -> None:
    error = refusal(folder_of("llama"), draft_path=str(tmp_path / "none"))
    assert (error.code, error.field) == ("model_not_found", "draft_path")


@pytest.mark.parametrize("size", [500, 600])
def test_a_draft_of_another_vocabulary_is_refused(size: int, folder_of: FolderOf, tmp_path: Path) -> None:
    error = refusal(folder_of("llama"), draft_path=str(write_model(tmp_path / "other", "llama", vocab_size=size)))
    assert (error.code, error.field) == ("unsupported", "draft_path")
    assert "tokenizers" in error.message


@pytest.mark.parametrize(("padded", "draft_padded"), [(True, False), (False, True)])
def test_a_draft_may_have_more_padding_or_less(
    padded: bool, draft_padded: bool, folder_of: FolderOf, tmp_path: Path
) -> None:
    """With random weights, padding is as probable as anything."""
    plain, more = folder_of("llama"), write_model(tmp_path / "more", "llama", vocab_size=600)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(plain / file, more / file)
    model, draft = (more if yes else plain for yes in (padded, draft_padded))
    asked = Generate(prompt=[10, 20, 599 if padded else 30], max_tokens=30, ignore_eos=True, temperature=1.5)
    (wanted,) = ask(open_runner(model), asked)
    assert (max(wanted.token_ids) > 512) == padded
    assert said(ask(open_runner(model, draft_path=str(draft)), asked)[0]) == said(wanted)


def test_a_draft_whose_tokens_are_others_is_refused(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "other", "llama", seed=1)
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokens = tokenizer["model"]["vocab"]
    tokens["!"], tokens["#"] = tokens["#"], tokens["!"]
    file.write_text(json.dumps(tokenizer))
    error = refusal(folder_of("llama"), draft_path=str(folder))
    assert (error.code, error.field) == ("unsupported", "draft_path")
    assert "tokenizers" in error.message


def test_a_prompt_that_begins_like_another_one_waits_for_it(drafted: GenerationRunner) -> None:
    drafted.clear_cache()
    chance = random.Random(0)
    beginning = [chance.randrange(5, 250) for _ in range(600)]
    driver = Driver(drafted)
    driver.add(1, Generate(prompt=[*beginning, 7], max_tokens=8))
    driver.add(2, Generate(prompt=[*beginning, 9, 9], max_tokens=8))
    admitted = drafted.table[2].admitted
    driver.finish()
    assert admitted.cached_tokens == 600


# Drafts from the text itself.


@pytest.fixture(scope="module")
def repeating(folder_of: FolderOf) -> GenerationRunner:
    """It has no second model: it proposes what followed the same tokens before."""
    return open_runner(folder_of("llama"), draft_path="builtin:ngram")


LOOPING: list[int] = [10, 20, 30, 40] * 6
"""A prompt that repeats itself, so that each of its tokens has a proposal."""
FEW: dict[int, float] = {50: 90.0, 60: 90.0, 70: 90.0}
"""A bias to three tokens: proposals are then right, wrong, or right in their first tokens."""


@pytest.mark.parametrize("name", REQUESTS)
def test_a_proposal_from_the_text_changes_no_answer(
    name: str, plain: GenerationRunner, repeating: GenerationRunner
) -> None:
    fields: dict[str, Any] = {"max_tokens": 60, "logit_bias": FEW, **REQUESTS[name]}
    request = Generate(prompt=LOOPING, cache="off", **fields)
    (wanted,) = ask(plain, request, seeds=[3])
    assert said(ask(repeating, request, seeds=[3])[0]) == said(wanted)


def test_proposals_from_the_text_have_log_probabilities(plain: GenerationRunner, repeating: GenerationRunner) -> None:
    asked = Generate(prompt=LOOPING, max_tokens=60, logprobs=True, top_logprobs=2, ignore_eos=True, logit_bias=FEW)
    (wanted,), (answer,) = ask(plain, asked), ask(repeating, asked)
    assert [described.token_id for described in answer.logprobs] == answer.token_ids == wanted.token_ids
    for got, want in zip(answer.logprobs, wanted.logprobs, strict=True):
        assert got.logprob == pytest.approx(want.logprob, abs=1e-4)


def test_an_answer_that_repeats_itself_takes_fewer_steps(repeating: GenerationRunner) -> None:
    request = Generate(prompt=LOOPING, max_tokens=200, ignore_eos=True, logit_bias={50: 99.0})
    tokens, drafted, steps = accepted(repeating, request)
    assert tokens == drafted + steps == 200
    assert steps < 60


def test_rows_that_join_and_leave_get_the_answers_that_they_get_alone(
    plain: GenerationRunner, repeating: GenerationRunner
) -> None:
    lengths = (60, 12, 25, 7)
    asked = [
        Generate(prompt=[*LOOPING, n], max_tokens=length, ignore_eos=True, cache="off", logit_bias=FEW)
        for n, length in enumerate(lengths)
    ]
    driver = Driver(repeating)
    for key, request in enumerate(asked):
        driver.add(key, request)
        driver.steps(4)
    answers = driver.finish()
    assert [said(answers[key]) for key in range(len(asked))] == [said(ask(plain, request)[0]) for request in asked]


def test_what_proposals_leave_in_the_cache_changes_no_later_turn(
    plain: GenerationRunner, repeating: GenerationRunner
) -> None:
    conversation = list(LOOPING)
    for turn in range(5):
        asked = Generate(prompt=conversation, max_tokens=20 + turn, ignore_eos=True, logit_bias=FEW)
        (wanted,), (answer,) = ask(plain, asked), ask(repeating, asked)
        assert said(answer) == said(wanted)
        conversation = [*conversation, *answer.token_ids, turn + 9]


@pytest.mark.parametrize("family", ["gemma3_text", "mamba"])
def test_proposals_from_the_text_are_refused_where_tokens_cannot_be_taken_back(
    family: str, folder_of: FolderOf
) -> None:
    error = refusal(folder_of(family), draft_path="builtin:ngram")
    assert (error.code, error.field) == ("unsupported", "draft_path")
