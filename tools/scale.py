"""Predict tokens a second, memory and cost of 1 to 1,000 machines.

`python tools/scale.py` prints the tables of docs/scale.md. The constants are fitted to measurements of docs/ranks.md
and docs/benchmarks.md, of one H200 or several with NVLink. `CHECKS` also has those that were not used for the fit.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

LAYER_MS: Final = 0.122
"""Time in which Python and MLX dispatch a layer. Fitted to 0.6B and 4B, one stream."""
ROWS_MS: Final = {1: 0.0, 8: 0.065, 32: 0.25}
"""Milliseconds that rows add to a layer's time, on top of dispatch or memory. Fitted to all four shapes."""
EXCHANGE_MS: Final = 0.15
"""Time that an exchange adds to a step of two ranks: NCCL takes a third of it. Fitted to all four shapes."""
EXCHANGED_BYTES_S: Final = 1e11
"""Bytes of activations that two ranks exchange in a second. Fitted to the first tokens of 4B and 42B on two ranks."""
MEMORY_BYTES_S: Final = 3.26e12
"""Bytes of weights that an H200 reads in a second, two thirds of its data sheet. Fitted to 42B, one stream."""
MEMORY_BYTES: Final = 141e9
BUDGET: Final = 0.9
"""Share of the memory that lmwire uses."""
PREFILL_FLOP_S: Final = 8.4e14
"""Operations of the products with the weights. Fitted, with the next, to the first tokens of 4B and 42B."""
PREFILL_LAYER_MS: Final = 0.725e-3
"""Time of a prompt's token in a layer beside those products, as attention. Ranks share half of it."""
MAX_ROWS: Final = 32
"""Answers that a worker decodes at once."""
ROUTED_BYTES: Final = 250
"""Bytes of a token in a stream of `lmwire serve`."""
DOLLARS_HOUR: Final = 3.0
"""Price of one H200 for an hour: an assumption."""
FAILURES_YEAR: Final = 1.0
"""Failures of a machine: an assumption."""
HOURS_YEAR: Final = 8766


class Shape(NamedTuple):
    """A model in bfloat16 whose heads are split over ranks, and whose tables of the vocabulary are not."""

    layers: int
    width: int
    inner: int
    queries: int
    keys: int
    """Width of the keys of all heads."""
    tables: int = 2
    """Tables of the vocabulary: the embeddings, and the last projection where that is another one."""
    vocabulary: int = 151_936

    @property
    def table_bytes(self) -> int:
        """Size of the tables of the vocabulary."""
        return 2 * self.tables * self.vocabulary * self.width

    @property
    def layers_bytes(self) -> int:
        """Size of all layers."""
        return 2 * self.layers * self.width * (2 * self.queries + 2 * self.keys + 3 * self.inner)

    @property
    def token_bytes(self) -> int:
        """Size of a token's keys and values."""
        return 2 * 2 * self.layers * self.keys

    def rank_bytes(self, ranks: int) -> float:
        """Return the size of a rank's weights."""
        return self.table_bytes + self.layers_bytes / ranks

    def step_ms(self, rows: int, ranks: int = 1) -> float:
        """Return the duration of a step: the dispatch or the memory, the rows and the exchanges."""
        dispatch = self.layers * LAYER_MS
        memory = 1000 * self.rank_bytes(ranks) / MEMORY_BYTES_S
        exchanges = 2 * EXCHANGE_MS if ranks > 1 else 0.0
        return max(dispatch, memory) + self.layers * (ROWS_MS[rows] + exchanges)

    def tokens_s(self, rows: int, ranks: int = 1) -> float:
        """Return the tokens a second of all rows."""
        return 1000 * rows / self.step_ms(rows, ranks)

    def first_token_ms(self, prompt: int, ranks: int = 1) -> float:
        """Return the time of a prompt's first token: its products, the rest, exchanges in a ring, and a step."""
        flop = (self.layers_bytes / ranks) * prompt  # two for each of the weights, of two bytes
        exchanged = 2 * self.layers * 2 * self.width * prompt * 2 * (ranks - 1) / ranks
        rest_ms = PREFILL_LAYER_MS * self.layers * prompt * (1 + 1 / ranks) / 2
        return 1000 * (flop / PREFILL_FLOP_S + exchanged / EXCHANGED_BYTES_S) + rest_ms + self.step_ms(1, ranks)

    def cached_tokens(self, ranks: int = 1) -> float:
        """Return how many tokens the memory beside the weights holds."""
        return (BUDGET * MEMORY_BYTES - self.rank_bytes(ranks)) * ranks / self.token_bytes


SHAPES: Final = {
    "0.6B": Shape(28, 1024, 3072, 2048, 1024, tables=1),
    "4B": Shape(36, 2560, 9728, 4096, 1024, tables=1),
    "8B": Shape(36, 4096, 12_288, 4096, 1024),
    "32B": Shape(64, 5120, 25_600, 8192, 1024),
    "42B": Shape(84, 5120, 25_600, 8192, 1024),
}


class Check(NamedTuple):
    """A measurement, and what the model says."""

    what: str
    predicted: float
    measured: str
    middle: float


TOKENS_S: Final = {
    "0.6B": ((1, 295, 87), (8, 1538, 499), (32, 4714, 1498)),
    "4B": ((1, 228, 70), (8, 1207, 415), (32, 2265, 1240)),
    "8B": ((1, 188, 58), (8, 1009, 414), (32, 2384, 1680)),
    "42B": ((1, 38, 24), (8, 254, 140), (32, 630, 440)),
}
"""Measured tokens a second, by the number of streams: of one process, and of two ranks."""
FIRST_TOKENS_MS: Final = {"0.6B": (74, 76), "4B": (147, 165), "8B": (189, 158), "42B": (685, 453)}
"""Measured times of the first token of 4,096: of one process, and of two ranks."""
RANK_GB: Final = {"4B": {2: 4.4, 4: 2.6}, "8B": {2: 9.4}, "42B": {2: 44.1}}
"""Measured weights of a rank, by the number of ranks."""


def _checks() -> Iterator[Check]:
    for name, sizes in RANK_GB.items():
        for ranks, measured in sizes.items():
            predicted = SHAPES[name].rank_bytes(ranks) / 1e9
            yield Check(f"{name}, weights of each of {ranks} ranks, GB", predicted, f"{measured:.1f}", measured)
    for name, rates in TOKENS_S.items():
        for rows, *by_ranks in rates:
            for ranks, measured in enumerate(by_ranks, 1):
                predicted = SHAPES[name].tokens_s(rows, ranks)
                streams = f"{rows} stream{'s' * (rows > 1)}, {ranks} rank{'s' * (ranks > 1)}"
                yield Check(f"{name}, {streams}, tokens/s", predicted, f"{measured:,}", measured)
    for name, by_ranks in FIRST_TOKENS_MS.items():
        for ranks, measured in enumerate(by_ranks, 1):
            predicted = SHAPES[name].first_token_ms(4096, ranks)
            what = f"{name}, first token of 4,096, {ranks} rank{'s' * (ranks > 1)}, ms"
            yield Check(what, predicted, f"{measured}", measured)


CHECKS: Final = tuple(_checks())
MACHINES: Final = (1, 2, 10, 100, 1000)


def tables() -> Iterator[str]:
    """Yield the tables in Markdown."""
    rows = [
        [
            check.what,
            f"{check.predicted:,.{0 if check.predicted > 10 else 1}f}",
            check.measured,
            f"{check.predicted / check.middle:.2f}",
        ]
        for check in CHECKS
    ]
    yield _table(["", "predicted", "measured", "predicted / measured"], rows)
    rows = [
        [
            name,
            *(f"{shape.rank_bytes(ranks) / 1e9:.1f}" for ranks in (1, 8)),
            *(f"{shape.tokens_s(MAX_ROWS, ranks):,.0f}" for ranks in (1, 2)),
            f"{shape.cached_tokens() / 4096:,.0f}",
            f"{1e6 * DOLLARS_HOUR / 3600 / shape.tokens_s(MAX_ROWS):.2f}",
        ]
        for name, shape in SHAPES.items()
    ]
    columns = ["weights, GB", "of each of 8 ranks", "32 streams, tokens/s", "on 2 ranks", "contexts of 4,096 in memory"]
    yield _table(["", *columns, "$ for 1M tokens"], rows)
    shape = SHAPES["8B"]
    rows = [
        [
            f"{machines:,}",
            f"{machines * MAX_ROWS:,}",
            f"{machines * shape.tokens_s(MAX_ROWS):,.0f}",
            f"{machines * shape.tokens_s(MAX_ROWS) * ROUTED_BYTES / 1e6:,.1f}",
            f"{100 / machines:.3g} %",
            f"{machines * FAILURES_YEAR * 24 / HOURS_YEAR:.2g}",
            f"{machines * DOLLARS_HOUR:,.0f}",
        ]
        for machines in MACHINES
    ]
    columns = ["streams", "tokens/s", "MB/s through routers", "hits without affinity", "failures a day", "$ an hour"]
    yield _table(["machines", *columns], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


if __name__ == "__main__":
    print("\n\n".join(tables()))
