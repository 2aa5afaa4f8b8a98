"""The table says where each choice of a request is, from its admission to its end."""

from typing import Any

import pytest

from lmwire_protocol import Generate
from lmwire_worker.engine.interface import Failed, Status
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.generation_runners import RunnerOf, ask

pytestmark = pytest.mark.slow

PROMPT = [(3 * position) % 200 + 5 for position in range(100)]
ALL = (Status.WAITING, Status.PREFILLING, Status.DECODING, Status.RESTARTING)


@pytest.fixture
def runner(runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch) -> GenerationRunner:
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 64)
    runner = runner_of("qwen3")
    runner.clear_cache()
    return runner


def request(**fields: Any) -> Generate:
    fields = {"prompt": PROMPT, "max_tokens": 20, "ignore_eos": True, **fields}
    return Generate(**fields)


def statuses(runner: GenerationRunner, key: int) -> list[Status]:
    return [sequence.status for sequence in runner.table[key].sequences]


def step_until(runner: GenerationRunner, key: int, status: Status) -> None:
    """Make steps until the first choice of a request has a status."""
    for _ in range(50):
        if statuses(runner, key)[0] is status:
            return
        runner.step()
    raise AssertionError(f"never {status}")


def fail_a_step(runner: GenerationRunner) -> None:
    """Make a step that raises an exception while it decodes."""

    def fail() -> None:
        raise RuntimeError("this step only")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.batch, "decode", fail)
        runner.step()


def test_a_request_waits_then_prefills_then_decodes_and_leaves_the_table(runner: GenerationRunner) -> None:
    runner.add(0, request(), 0)
    assert statuses(runner, 0) == [Status.WAITING]
    runner.step()
    assert statuses(runner, 0) == [Status.PREFILLING]
    step_until(runner, 0, Status.DECODING)
    while 0 in runner.table:
        runner.step()
    assert len(runner.table) == 0
    assert not runner.batch.running


def test_the_other_choices_wait_while_the_first_computes_their_prompt(runner: GenerationRunner) -> None:
    runner.add(0, request(n=3), 0)
    runner.step()
    assert statuses(runner, 0) == [Status.PREFILLING, Status.WAITING, Status.WAITING]
    step_until(runner, 0, Status.DECODING)
    assert statuses(runner, 0) == [Status.DECODING] * 3
    runner.remove(0)


def test_a_request_waits_for_the_prefill_of_its_own_prompt(runner: GenerationRunner) -> None:
    for key in (0, 1):
        runner.add(key, request(prompt=6 * PROMPT), key)
    runner.step()
    assert (statuses(runner, 0), statuses(runner, 1)) == ([Status.PREFILLING], [Status.WAITING])
    step_until(runner, 0, Status.DECODING)
    step_until(runner, 1, Status.DECODING)
    for key in (0, 1):
        runner.remove(key)


def test_a_prompt_whose_tokens_are_scored_is_computed_by_itself(runner: GenerationRunner) -> None:
    runner.add(0, request(prompt_logprobs=True), 0)
    runner.step()
    assert statuses(runner, 0) == [Status.PREFILLING]
    assert [active.first.key for active in runner.table.solo] == [0]
    assert runner.table.in_batch == []
    step_until(runner, 0, Status.DECODING)
    assert runner.table.solo == []
    runner.remove(0)


def test_rows_of_a_failed_step_restart_one_by_one(runner: GenerationRunner) -> None:
    prompts = [PROMPT, PROMPT[::-1]]
    alone = [ask(runner, request(prompt=prompt))[0].token_ids for prompt in prompts]
    for key, prompt in enumerate(prompts):
        runner.add(key, request(prompt=prompt), 0)
    for key in (0, 1):
        step_until(runner, key, Status.DECODING)

    fail_a_step(runner)
    assert statuses(runner, 0) + statuses(runner, 1) == [Status.RESTARTING] * 2
    runner.step()
    assert statuses(runner, 0) + statuses(runner, 1) == [Status.PREFILLING, Status.RESTARTING]
    sequences = [runner.table[key].first for key in (0, 1)]
    while len(runner.table):
        runner.step()
    assert [sequence.generated for sequence in sequences] == alone


@pytest.mark.parametrize("status", ALL)
def test_a_request_is_dropped_in_any_status(status: Status, runner: GenerationRunner) -> None:
    beside = request(prompt=PROMPT[:7])
    (alone,) = ask(runner, beside)
    runner.add(0, request(n=2), 0)
    runner.add(1, beside, 0)
    if status is Status.RESTARTING:
        step_until(runner, 0, Status.DECODING)
        fail_a_step(runner)
    step_until(runner, 0, status)
    other = runner.table[1].first
    dropped = runner.table[0].sequences
    runner.remove(0)
    assert [sequence.status for sequence in dropped] == [Status.ENDED] * 2
    while len(runner.table):
        assert not any(isinstance(event, Failed) for event in runner.step())
    assert other.generated == alone.token_ids
    assert not runner.batch.running
