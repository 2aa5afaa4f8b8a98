"""After a chunk, MLX keeps a little of the freed memory for the next chunk."""

import gc

import mlx.core as mx
import pytest

from lmwire_protocol import Generate
from lmwire_worker.generation.batching import row_group
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from support.runners.generation_runners import Driver, RunnerOf

pytestmark = pytest.mark.slow

PROMPT = [(3 * position) % 200 + 5 for position in range(100)]


@pytest.fixture(autouse=True)
def whole_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt is one chunk, however busy this machine is."""
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 256)


def spare_bytes_after_a_chunk(runner_of: RunnerOf) -> int:
    driver = Driver(runner_of("qwen3"))
    driver.add(0, Generate(prompt=PROMPT, max_tokens=2, cache="off"))
    gc.collect()  # what earlier tests left must not be freed during the step
    mx.clear_cache()
    driver.step()
    spare = mx.get_cache_memory()
    driver.finish()
    return spare


def test_the_memory_of_a_short_chunk_stays_for_the_next(runner_of: RunnerOf) -> None:
    assert 4096 < spare_bytes_after_a_chunk(runner_of) <= row_group.MAX_SPARE_BYTES


def test_memory_above_the_spare_limit_is_released(runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = spare_bytes_after_a_chunk(runner_of)
    monkeypatch.setattr(row_group, "MAX_SPARE_BYTES", measured // 2)
    assert spare_bytes_after_a_chunk(runner_of) < measured // 10
