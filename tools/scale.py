"""Predict tokens a second, memory and cost of 1 to 1,000 machines.

`python tools/scale.py` prints the tables of docs/scale.md. The constants are fitted to measurements of docs/ranks.md
and docs/benchmarks.md, of one H200 or several with NVLink. `CHECKS` also has those that were not used for the fit.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

LAYER_MS: Final = 0.147
"""Time in which Python and MLX dispatch a layer: the whole of a step of one stream. Fitted to 8B on one GPU."""
EXCHANGE_MS: Final = 0.13
"""Time of an exchange of two ranks, dispatch included. Fitted to 4B, one stream, two ranks."""
ROWS_MS: Final = {1: 0.0, 8: 0.126, 32: 0.37}
"""Milliseconds that rows add to a layer's time. Fitted to 4B in mlx_lm's plain loop for 32, to 0.6B for 8."""
EXCHANGED_BYTES_S: Final = 2e10
"""Bytes of activations that two ranks exchange in a second. Fitted to 4B's first token on two ranks."""
MEMORY_BYTES_S: Final = 4.8e12
"""An H200's memory, by its data sheet."""
MEMORY_BYTES: Final = 141e9
BUDGET: Final = 0.9
"""Share of the memory that lmwire uses."""
PREFILL_FLOP_S: Final = 2.3e14
"""Fitted to 4B's first token of 4,096 tokens on one GPU."""
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
    """A model in bfloat16 whose heads are split over ranks, and whose table of embeddings is not."""

    layers: int
    width: int
    inner: int
    queries: int
    keys: int
    """Width of the keys of all heads."""
    vocabulary: int = 151_936

    @property
    def table_bytes(self) -> int:
        """Size of the table of embeddings."""
        return 2 * self.vocabulary * self.width

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
        """Return the duration of a step: the dispatch or the memory, and the exchanges."""
        dispatch = self.layers * (LAYER_MS + ROWS_MS[rows])
        memory = 1000 * self.rank_bytes(ranks) / MEMORY_BYTES_S
        return max(dispatch, memory) + (2 * self.layers * EXCHANGE_MS if ranks > 1 else 0.0)

    def tokens_s(self, rows: int, ranks: int = 1) -> float:
        """Return the tokens a second of all rows."""
        return 1000 * rows / self.step_ms(rows, ranks)

    def first_token_ms(self, prompt: int, ranks: int = 1) -> float:
        """Return the time of a prompt's first token: its arithmetic, its exchanges in a ring, and a step."""
        flop = (self.layers_bytes / ranks) * prompt  # two for each of the weights, of two bytes
        exchanged = 2 * self.layers * 2 * self.width * prompt * 2 * (ranks - 1) / ranks
        return 1000 * (flop / PREFILL_FLOP_S + exchanged / EXCHANGED_BYTES_S) + self.step_ms(1, ranks)

    def cached_tokens(self, ranks: int = 1) -> float:
        """Return how many tokens the memory beside the weights holds."""
        return (BUDGET * MEMORY_BYTES - self.rank_bytes(ranks)) * ranks / self.token_bytes


SHAPES: Final = {
    "0.6B": Shape(28, 1024, 3072, 2048, 1024),
    "4B": Shape(36, 2560, 9728, 4096, 1024),
    "8B": Shape(36, 4096, 12_288, 4096, 1024),
    "32B": Shape(64, 5120, 25_600, 8192, 1024),
}


class Check(NamedTuple):
    """A measurement, and what the model says."""

    what: str
    predicted: float
    measured: str
    middle: float


CHECKS: Final = (
    Check("4B, weights of each of 2 ranks, GB", SHAPES["4B"].rank_bytes(2) / 1e9, "4.4", 4.4),
    Check("4B, weights of each of 4 ranks, GB", SHAPES["4B"].rank_bytes(4) / 1e9, "2.6", 2.6),
    Check("8B, weights of each of 4 ranks, GB", SHAPES["8B"].rank_bytes(4) / 1e9, "4.7", 4.7),
    Check("0.6B, 1 stream, tokens/s", SHAPES["0.6B"].tokens_s(1), "276", 276),
    Check("4B, 1 stream, tokens/s", SHAPES["4B"].tokens_s(1), "187", 187),
    Check("0.6B, 8 streams, tokens/s", SHAPES["0.6B"].tokens_s(8), "1,129", 1129),
    Check("0.6B, 32 streams, tokens/s", SHAPES["0.6B"].tokens_s(32), "3,377", 3377),
    Check("4B, 32 streams, tokens/s", SHAPES["4B"].tokens_s(32), "1,014", 1014),
    Check("4B, 1 stream, 2 ranks, tokens/s", SHAPES["4B"].tokens_s(1, 2), "59 to 76", 68),
    Check("4B, 1 stream, 4 ranks, tokens/s", SHAPES["4B"].tokens_s(1, 4), "47 to 72", 60),
    Check("8B, 1 stream, 2 ranks, mlx_lm, tokens/s", SHAPES["8B"].tokens_s(1, 2), "95 to 121", 108),
    Check("4B, 32 streams, 2 ranks, tokens/s", SHAPES["4B"].tokens_s(32, 2), "575", 575),
    Check("4B, 32 streams, 4 ranks, tokens/s", SHAPES["4B"].tokens_s(32, 4), "238", 238),
    Check("4B, first token of 4,096, 2 ranks, ms", SHAPES["4B"].first_token_ms(4096, 2), "156", 156),
    Check("4B, first token of 4,096, 4 ranks, ms", SHAPES["4B"].first_token_ms(4096, 4), "319", 319),
)
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
