"""The size of a decode step's graph: no larger than that of mlx-lm's own batch, however many rows it has.

A GPU starts a kernel for most primitives. Where the model is small, these starts take most of a step.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import BatchGenerator
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.models.llama import Model, ModelArgs

from lmwire_protocol import Generate, Generation
from lmwire_worker.generation.banned_strings import BannedStrings
from lmwire_worker.generation.batching.decoding import Decoding
from lmwire_worker.generation.batching.row_group import RowGroup
from lmwire_worker.generation.batching.rows import RowState
from lmwire_worker.generation.sampling.dry import Repetitions
from lmwire_worker.generation.structured_output.constraint import Constraint

STEPS = 6
LAYERS = 3
Counts = list[Counter[str]]
"""The primitives of each step."""


class Row:
    """Takes any tokens, without end."""

    seed = 0
    constraint: Constraint | None = None
    repetitions: Repetitions | None = None
    bans: BannedStrings | None = None
    remaining_tokens = 1000

    def __init__(self, prompt: list[int], **fields: Any) -> None:
        self.prompt = prompt
        self.request: Generation = Generate(prompt=prompt, **fields)

    def append_token(self, token: int, logprob: object, *, drafted: bool = False) -> bool:
        return True

    def forced_tokens(self, token: int, limit: int) -> list[int]:
        return []


@pytest.fixture(scope="module")
def network() -> Any:
    args: dict[str, Any] = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100}
    model = Model(ModelArgs(model_type="llama", num_hidden_layers=LAYERS, rms_norm_eps=1e-5, **args))
    mx.eval(model.parameters())
    return model


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Counts]:
    """Return a list that gets the primitives of each graph that is started."""
    counted: Counts = []
    start = mx.async_eval

    def count(*arrays: Any) -> None:
        counted.append(primitives(tmp_path / "graph.dot", arrays))
        start(*arrays)

    monkeypatch.setattr(mx, "async_eval", count)
    yield counted


def primitives(file: Path, arrays: Any) -> Counter[str]:
    """Return how many primitives of each kind the unevaluated arrays need."""
    mx.export_to_dot(str(file), *flattened(arrays))
    return Counter(re.findall(r'label ="(\w+)", shape=rectangle', file.read_text()))


def flattened(arrays: Any) -> Iterator[mx.array]:
    if isinstance(arrays, mx.array):
        yield arrays
    else:
        for part in arrays:
            yield from flattened(part)


def prompts(lengths: Sequence[int]) -> list[list[int]]:
    return [[(7 * row + 3 * place) % 90 + 5 for place in range(length)] for row, length in enumerate(lengths)]


def of_library(network: Any, lengths: Sequence[int], steps: Counts) -> Counter[str]:
    """Return the primitives of a step of mlx-lm's batch."""
    steps.clear()
    rows = len(lengths)
    generator = BatchGenerator(network, max_tokens=STEPS, completion_batch_size=rows, prefill_batch_size=rows)
    generator.insert(prompts(lengths))
    while generator.next_generated():
        pass
    return steps[STEPS // 2]


def of_group(network: Any, rows: Sequence[Row], steps: Counts) -> Counter[str]:
    """Return the primitives of a step of a group of rows."""
    states = [RowState(row, row.prompt, make_prompt_cache(network), 0) for row in rows]
    group = RowGroup(network, Decoding(set(), set(), positions=1 << 20), states)
    group.prefill([row.prompt[:-1] for row in rows], None)
    steps.clear()
    group.start_decoding()
    for _ in range(STEPS):
        group.decode()
    return steps[STEPS // 2]


@pytest.mark.parametrize("count", [1, 8, 32])
@pytest.mark.parametrize("length", [lambda row: 9, lambda row: 5 + row % 7], ids=["one-length", "many-lengths"])
def test_a_step_has_fewer_primitives_than_the_library_s(
    length: Callable[[int], int], count: int, network: Any, steps: Counts
) -> None:
    lengths = [*map(length, range(count))]
    theirs = of_library(network, lengths, steps)
    ours = of_group(network, [*map(Row, prompts(lengths))], steps)
    assert ours.total() < theirs.total(), ours - theirs


@pytest.mark.parametrize("count", [8, 32])
def test_rows_of_one_length_cost_what_a_single_row_costs(count: int, network: Any, steps: Counts) -> None:
    single = of_group(network, [*map(Row, prompts([9]))], steps)
    rows = of_group(network, [*map(Row, prompts([9] * count))], steps)
    assert rows == single, "neither a mask nor an offset of each row"


def test_only_what_a_request_asks_for_is_computed(network: Any, steps: Counts) -> None:
    plain = of_group(network, [*map(Row, prompts([9] * 4))], steps)
    without = of_group(network, [Row(prompt, top_p=0.5, min_p=0.1, seed=3) for prompt in prompts([9] * 4)], steps)
    penalized = of_group(network, [Row(prompt, repetition_penalty=1.3) for prompt in prompts([9] * 4)], steps)
    assert without == plain, "a greedy row needs no filter"
    assert penalized.total() > plain.total(), "the count sees what is asked for"
