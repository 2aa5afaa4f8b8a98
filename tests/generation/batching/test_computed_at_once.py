"""A processor's caches hold little: there a slice is computed in parts that fit, and nothing else changes."""

from collections.abc import Sequence

import mlx.core as mx
import pytest

from lmwire_protocol import Generate
from lmwire_worker.generation import runner as runner_module
from lmwire_worker.generation.batching import row_group
from lmwire_worker.generation.batching.row_group import MAX_CPU_TOKENS
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.generation_runners import EACH_FAMILY, FolderOf, RunnerOf, ask, open_runner, watch_chunks

pytestmark = pytest.mark.slow

EVEN = [301] * 4
UNEVEN = (40, 150, 300, 301, 302)


@pytest.fixture(autouse=True)
def whole_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All prompts are processed in one step, however busy this machine is."""
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 2048)
    monkeypatch.setattr(PrefillPolicy, "max_batch_tokens", lambda *_: 8192)


@pytest.fixture
def runner(runner_of: RunnerOf) -> GenerationRunner:
    return runner_of("qwen3")


def requests(lengths: Sequence[int]) -> list[Generate]:
    prompts = [[(7 * row + 3 * place) % 200 + 5 for place in range(length)] for row, length in enumerate(lengths)]
    return [Generate(prompt=prompt, max_tokens=8, ignore_eos=True, cache="off") for prompt in prompts]


def test_prompts_share_what_a_processor_computes_at_once(
    runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = watch_chunks(runner, monkeypatch)
    ask(runner, *requests(EVEN))
    assert shapes == [(4, 128), (4, 128), (4, 44)]


@pytest.mark.parametrize("fails", [False, True], ids=["computes them wrongly", "fails on them"])
def test_a_model_is_tried_before_its_first_padded_prompts_and_not_again(
    fails: bool, folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def supports_padding(network: object) -> bool:
        tried.append(network)
        if fails:
            raise ValueError("no mask")
        return False

    monkeypatch.setattr(runner_module, "supports_padding", supports_padding)
    runner = open_runner(folder_of("qwen3"))
    ask(runner, *requests([40]))
    assert not tried
    ask(runner, *requests([40, 41]))
    ask(runner, *requests([40, 41]))
    assert len(tried) == 1
    shapes = watch_chunks(runner, monkeypatch)
    ask(runner, *requests([40, 41]))
    assert shapes == [(1, 39), (1, 40)]


@pytest.mark.parametrize("family", ["gemma3_text", "qwen3_next"])
def test_prompts_with_windows_or_states_are_computed_together(
    family: str, folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = open_runner(folder_of(family))
    shapes = watch_chunks(runner, monkeypatch)
    ask(runner, *requests([40, 41]))
    assert shapes == [(2, 40)]


@pytest.mark.parametrize(("family", "grows"), [("qwen3", True), ("gemma3_text", False), ("qwen3_next", False)])
def test_only_rows_with_plain_caches_grow_unevenly_on_a_gpu(
    family: str, grows: bool, folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = open_runner(folder_of(family))
    assert runner.may_pad()
    monkeypatch.setattr(runner_module.mx, "default_device", lambda: mx.gpu)
    assert runner.may_step_unevenly() == grows


def test_a_single_prompt_uses_the_whole_chunk(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = watch_chunks(runner, monkeypatch)
    ask(runner, *requests([MAX_CPU_TOKENS + 101]))
    assert shapes == [(1, MAX_CPU_TOKENS), (1, 100)]


def test_more_prompts_than_fit_a_chunk_all_progress(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_group, "MAX_CPU_TOKENS", 3)
    answers = ask(runner, *requests([9] * 4))
    assert [answer.generated for answer in answers] == [8] * 4


def test_a_shared_chunk_is_one_step(runner: GenerationRunner) -> None:
    (answer, *_) = ask(runner, *requests(EVEN))
    assert [done for done, _ in answer.prefilled] == [300, 301]


def test_a_gpu_computes_the_whole_chunk(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = watch_chunks(runner, monkeypatch)
    ask(runner, *requests([2]))  # what asks for the device when it begins has done so
    shapes.clear()
    monkeypatch.setattr(mx, "default_device", lambda: mx.gpu)
    ask(runner, *requests(EVEN))
    assert shapes == [(4, 300)]


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_answers_are_the_same_in_shared_chunks(
    family: str, runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(family)
    in_parts = ask(runner, *requests(UNEVEN))
    monkeypatch.setattr(row_group, "MAX_CPU_TOKENS", 1 << 20)
    at_once = ask(runner, *requests(UNEVEN))
    assert [answer.token_ids for answer in in_parts] == [answer.token_ids for answer in at_once]
