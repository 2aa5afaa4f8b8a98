"""A batch by itself: rows come and go at any step, and each gets the tokens that it gets alone."""

import ast
import copy
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models import cache as caches
from mlx_lm.models.gemma3_text import Model as WindowModel
from mlx_lm.models.gemma3_text import ModelArgs as WindowArgs
from mlx_lm.models.llama import Model, ModelArgs

from lmwire_protocol import Generate, Generation
from lmwire_worker.generation import batching
from lmwire_worker.generation.banned_strings import BannedStrings
from lmwire_worker.generation.batching import Batch, Decoding, PromptProgress, prefill
from lmwire_worker.generation.caches import RowCache
from lmwire_worker.generation.sampling.dry import Repetitions
from lmwire_worker.generation.structured_output.constraint import Constraint
from support.models.small_networks import special_network

WINDOW = 16
PROMPTS = [[(7 * row + 3 * place) % 90 + 5 for place in range(length)] for row, length in enumerate((9, 4, 21, 13))]


class Row:
    """Takes greedy tokens, five unless told otherwise."""

    request: Generation = Generate(prompt="")
    seed = 0
    constraint: Constraint | None = None
    repetitions: Repetitions | None = None
    bans: BannedStrings | None = None

    def __init__(self, prompt: list[int], count: int = 5) -> None:
        self.prompt = prompt
        self.tokens: list[int] = []
        self._count = count

    @property
    def remaining_tokens(self) -> int:
        return self._count - len(self.tokens)

    def append_token(self, token: int, logprob: object, *, drafted: bool = False) -> bool:
        self.tokens.append(token)
        return self.remaining_tokens > 0

    def forced_tokens(self, token: int, limit: int) -> list[int]:
        return []


@pytest.fixture(scope="module")
def network() -> Any:
    mx.random.seed(3)
    return Model(
        ModelArgs(
            model_type="llama",
            hidden_size=32,
            num_hidden_layers=2,
            intermediate_size=64,
            num_attention_heads=2,
            rms_norm_eps=1e-5,
            vocab_size=100,
        )
    )


@pytest.fixture
def batch(network: Any) -> Batch:
    return new_batch(network)


def new_batch(network: Any, rows: int = 8, prompts: int = 8, may_pad: Callable[[], bool] = lambda: True) -> Batch:
    return Batch(network, rows, prompts, Decoding(set(), set(), positions=1 << 20), padding=8192, may_pad=may_pad)


def step(batch: Batch) -> None:
    """Prefill or start what can be, decode, and drop the rows that have ended."""
    if batch.admit_prompts(256):
        batch.prefill(256)
    batch.start_decoding()
    for rows in (batch.first_tokens(), batch.decode()):
        batch.drop([row for row in rows if row.remaining_tokens == 0])


def run(batch: Batch, rows: Iterable[Row]) -> list[list[int]]:
    added = list(rows)
    for row in added:
        batch.add(row, row.prompt)
    while any(row.remaining_tokens for row in added):
        step(batch)
    return [row.tokens for row in added]


def alone(network: Any, prompt: list[int], count: int = 5) -> list[int]:
    return run(new_batch(network), [Row(prompt, count)])[0]


def start(batch: Batch, row: Row) -> None:
    """Add a row, and compute its prompt but for its last token."""
    batch.add(row, row.prompt)
    batch.admit_prompts(256)
    batch.prefill(256)


# Rows.


def test_rows_get_together_what_they_get_alone(network: Any, batch: Batch) -> None:
    assert run(batch, map(Row, PROMPTS)) == [alone(network, prompt) for prompt in PROMPTS]


@pytest.mark.parametrize("leaving", range(len(PROMPTS)))
@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_row_leaves_at_any_step_and_the_others_go_on(at: int, leaving: int, network: Any, batch: Batch) -> None:
    rows = [Row(prompt, 8) for prompt in PROMPTS]
    for row in rows:
        batch.add(row, row.prompt)
    for _ in range(at):
        step(batch)
    batch.drop([rows.pop(leaving)])
    while any(row.remaining_tokens for row in rows):
        step(batch)
    assert [row.tokens for row in rows] == [alone(network, row.prompt, 8) for row in rows]


@pytest.mark.parametrize("joining", [PROMPTS[0], PROMPTS[0][1:], PROMPTS[2]], ids=["as long", "shorter", "longer"])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_row_joins_rows_of_one_length_and_one_of_these_leaves(
    at: int, joining: list[int], network: Any, batch: Batch
) -> None:
    rows = [Row([token + place for token in PROMPTS[0]], 9) for place in range(3)]
    for row in rows:
        batch.add(row, row.prompt)
    for _ in range(at):
        step(batch)
    rows.append(Row(joining, 9))
    batch.add(rows[-1], joining)
    step(batch)
    step(batch)
    batch.drop([rows.pop(1)])
    while any(row.remaining_tokens for row in rows):
        step(batch)
    assert [row.tokens for row in rows] == [alone(network, row.prompt, 9) for row in rows]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_cache_of_one_of_several_rows_of_one_length_is_that_of_the_row_alone(
    index: int, network: Any, batch: Batch
) -> None:
    rows = [Row([token + place for token in PROMPTS[2]], 9) for place in range(3)]
    for row in rows:
        batch.add(row, row.prompt)
    batch.admit_prompts(256)
    batch.prefill(8)
    kept = batch.checkpoint(rows[index])
    assert kept is not None
    lone = prefill(network, rows[index].prompt[:9])
    (keys, values), *_ = kept.cache.slices(0, 8)
    assert mx.allclose(keys, lone[0].keys[..., :8, :], atol=1e-5)
    assert mx.allclose(values, lone[0].values[..., :8, :], atol=1e-5)
    batch.prefill(256)
    copied = batch.copy_cache(rows[index])
    assert copied[0].keys.shape[0] == 1
    batch.drop(rows)
    batch.add_prefilled(rows[index], rows[index].prompt, copied)
    while rows[index].remaining_tokens:
        step(batch)
    assert rows[index].tokens == alone(network, rows[index].prompt, 9)


def test_no_more_rows_run_than_there_may_be(network: Any) -> None:
    batch = new_batch(network, rows=2, prompts=1)
    rows = [Row([(3 * place) % 90 + 5 for place in range(length)]) for length in (4, 5, 600, 601, 1300)]
    for row in rows:
        batch.add(row, row.prompt)
    most = 0
    while any(row.remaining_tokens for row in rows):
        step(batch)
        most = max(most, batch.running)
    assert most == 2
    assert all(len(row.tokens) == 5 for row in rows)


def test_a_prompt_alone_needs_no_padding(network: Any) -> None:
    asked: list[None] = []
    batch = new_batch(network, may_pad=lambda: asked.append(None) is None)
    for prompt in PROMPTS:
        run(batch, [Row(prompt)])
    assert not asked


def test_prompts_are_computed_one_by_one_if_padding_would_change_them(network: Any) -> None:
    batch = new_batch(network, may_pad=lambda: False)
    rows = [Row(prompt) for prompt in PROMPTS]
    for row in rows:
        batch.add(row, row.prompt)
    together = 0
    while any(row.remaining_tokens for row in rows):
        assert batch.admit_prompts(256) <= 1
        step(batch)
        together = max(together, batch.running)
    assert together > 1, "answers need no such padding"
    assert [row.tokens for row in rows] == [alone(network, prompt) for prompt in PROMPTS]


def test_a_prefilled_row_starts_before_those_that_wait(network: Any) -> None:
    batch = new_batch(network, rows=1)
    waiting, prefilled = Row([7]), Row(PROMPTS[0])
    batch.add(waiting, waiting.prompt)
    batch.add_prefilled(prefilled, prefilled.prompt, prefill(network, prefilled.prompt))
    assert [progress.row for progress in batch.start_decoding()] == [prefilled]
    batch.first_tokens()
    while prefilled.remaining_tokens:
        batch.decode()
    assert prefilled.tokens == alone(network, PROMPTS[0])
    assert not waiting.tokens


def test_a_first_token_does_not_wait_for_a_row_that_left_after_its_own(batch: Batch) -> None:
    gone, next_one = Row(PROMPTS[0]), Row(PROMPTS[1])
    start(batch, gone)
    batch.start_decoding()
    assert batch.first_tokens() == [gone]
    batch.drop([gone])
    start(batch, next_one)
    batch.start_decoding()
    assert batch.first_tokens() == [next_one]


def test_tokens_from_before_a_failed_step_are_delivered(
    network: Any, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Row(PROMPTS[0])
    start(batch, row)
    batch.start_decoding()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("this step only")

    monkeypatch.setattr(Model, "__call__", fail)
    with pytest.raises(RuntimeError, match="this step only"):
        batch.decode()
    monkeypatch.undo()
    assert row.tokens == alone(network, row.prompt)[:1]


# Prompts.


def test_chunks_end_at_checkpoints_and_before_the_last_token(batch: Batch) -> None:
    row = Row(PROMPTS[2])
    batch.add(row, row.prompt, checkpoints=[6, 17])
    seen: list[PromptProgress] = []
    while batch.has_prompts:
        batch.admit_prompts(256)
        seen += batch.prefill(8)
    assert [(progress.done, progress.at_checkpoint) for progress in seen] == [
        (6, True), (14, False), (17, True), (20, True)
    ]  # fmt: skip
    assert batch.start_decoding() == [PromptProgress(row, 21, 21, at_checkpoint=False)]


def test_progress_counts_no_cached_tokens(network: Any, batch: Batch) -> None:
    row = Row(PROMPTS[2])
    batch.add(row, row.prompt, prefill(network, row.prompt[:12]), prefix_tokens=11)
    batch.admit_prompts(256)
    (progress,) = batch.prefill(4)
    assert (progress.done, progress.total, progress.is_complete) == (4, 10, False)


def test_a_copied_cache_starts_another_row_and_shares_nothing(network: Any, batch: Batch) -> None:
    first, second = Row(PROMPTS[2]), Row(PROMPTS[2])
    beside = Row(PROMPTS[3])
    batch.add(beside, beside.prompt)
    start(batch, first)
    batch.add_prefilled(second, second.prompt, batch.copy_cache(first))
    batch.start_decoding()
    while any(row.remaining_tokens for row in (first, second, beside)):
        batch.decode()
    assert first.tokens == second.tokens == alone(network, PROMPTS[2])
    assert beside.tokens == alone(network, PROMPTS[3])


# What is stored of rows.


def test_a_checkpoint_holds_what_is_computed(network: Any, batch: Batch) -> None:
    row = Row(PROMPTS[2])
    batch.add(row, row.prompt)
    assert batch.checkpoint(row) is None, "it is queued"
    batch.admit_prompts(256)
    batch.prefill(8)
    checkpoint = batch.checkpoint(row)
    assert checkpoint and checkpoint.tokens == row.prompt[:8]
    batch.prefill(256)
    batch.start_decoding()
    batch.decode()
    checkpoint = batch.checkpoint(row)
    assert checkpoint and checkpoint.tokens == row.prompt + row.tokens
    batch.drop([row])
    assert batch.checkpoint(row) is None


@pytest.mark.slow
def test_a_snapshot_of_a_window_after_a_long_chunk_is_no_longer_than_the_window() -> None:
    mx.random.seed(4)
    network = WindowModel(
        WindowArgs(
            model_type="gemma3_text",
            hidden_size=32,
            num_hidden_layers=2,
            intermediate_size=64,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            vocab_size=100,
            sliding_window=WINDOW,
            sliding_window_pattern=2,
        )
    )
    tokens = [(3 * place) % 90 + 5 for place in range(3 * WINDOW)]
    cache = network.make_cache()
    network(mx.array([tokens]), cache=cache)
    (window,) = (layer for layer in cache if isinstance(layer, caches.RotatingKVCache))
    (kept,) = RowCache([window], 0, len(tokens)).snapshot()
    assert kept.keys.shape[2] == WINDOW < window.nbytes * WINDOW // kept.nbytes
    resumed = [kept if layer is window else copy.deepcopy(layer) for layer in cache]
    for token in (9, 31, 8):
        expected, logits = (network(mx.array([[token]]), cache=layers) for layers in (cache, resumed))
        assert mx.allclose(logits, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["falcon_h1", "gemma3_text", "gpt_oss", "mamba2", "qwen3_next"])
def test_rows_with_windows_or_states_join_and_leave_at_any_chunk(model_type: str) -> None:
    network = special_network(model_type)
    chance = random.Random(model_type)
    for _ in range(3):
        batch = new_batch(network)
        lengths = [chance.choice((2, 5, 18, 41, 130)) for _ in range(5)]
        rows = [Row([chance.randrange(5, 95) for _ in range(length)], chance.randint(2, 12)) for length in lengths]
        queued = list(rows)
        while any(row.remaining_tokens for row in rows):
            for row in queued[: chance.choice((0, 1, 2))]:
                batch.add(row, row.prompt)
                queued.remove(row)
            if batch.admit_prompts(chance.choice((16, 256))):
                batch.prefill(chance.choice((3, 16, 64)))
            batch.start_decoding()
            given = batch.first_tokens() or (batch.decode() if batch.running else [])
            batch.drop([row for row in given if row.remaining_tokens == 0])
        for row in rows:
            assert row.tokens == alone(network, row.prompt, len(row.tokens))


# The library below.


def test_only_public_names_of_mlx_lm_are_used() -> None:
    """Its private names change from one version to the next."""
    theirs = re.findall(r"\b_[a-z]\w*", Path(str(caches.__file__)).read_text())
    for file in Path(str(batching.__file__)).parent.glob("*.py"):
        source = file.read_text()
        own = re.findall(r"(?:self\.|def )(_\w+)", source)
        nodes = list(ast.walk(ast.parse(source)))
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert not used & set(theirs) - set(own), file.name
        libraries = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
        assert {name for name in libraries if name.startswith("mlx_lm")} <= {"mlx_lm.models.cache"}, file.name


# Proposals from the text itself.

CYCLE = 10
TURNS = 33
"""Positions between two tokens that no proposal foresees."""


class Successor(Model):
    """Answers each token with the next one of a cycle, but at some places with the one after that."""

    def __call__(self, inputs: mx.array, cache: Any = None, input_embeddings: Any = None) -> mx.array:
        before = cache[0].offset
        super().__call__(inputs, cache=cache)
        places = mx.arange(inputs.shape[1]) + before
        return 100.0 * (mx.arange(100) == ((inputs + 1 + (places % TURNS == 0)) % CYCLE)[..., None])


@pytest.mark.parametrize("length", range(24, 38))
def test_a_row_with_proposals_gets_the_tokens_that_it_gets_without(network: Any, length: int) -> None:
    """Each of its first tokens, too, is proposed, and the prompt ends at each place of the cycle."""
    successor = Successor(network.args)
    prompt = [place % CYCLE for place in range(length)]
    plain, row = Row(prompt, 100), Row(prompt, 100)
    run(new_batch(successor), [plain])
    decoding = Decoding(set(), set(), positions=1 << 20, looks_up=True)
    batch = Batch(successor, 8, 8, decoding, padding=8192, may_pad=lambda: True)
    batch.add(row, prompt)
    steps = 0
    while row.remaining_tokens:
        step(batch)
        steps += 1
    assert row.tokens == plain.tokens
    assert steps < 50
