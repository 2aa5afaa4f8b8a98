"""`lmwire bench ranks`: a model that is split over several processes, against the same model in one."""

import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final

from lmwire_protocol import Load, Stats
from lmwire_worker.ranks.channel import FrameWriter
from lmwire_worker.ranks.hosts import default_backend, group_environment, local_hosts, rank_environment

from ....child_process import child_environment, python_command
from ...errors import CliError
from .. import workload
from ..pairing import speed_ratio
from ..programs import processes
from ..programs.processes import WorkerProcess
from ..results import Result

STREAMS: Final = (1, 8, 32)
PROMPT_TOKENS: Final = 4096
CONTEXT: Final = 8192
BUILT_IN: Final = "builtin:tiny"
RECORDS: Final = 2000
CHECKSUM: Final = 0xFFFFFFFF


class _Runs:
    """Measurements of one number of processes, one for each round."""

    def __init__(self) -> None:
        self.rates: dict[int, list[float]] = defaultdict(list)
        """Tokens a second while all streams are decoded, by the number of streams."""
        self.plain_rates: dict[int, list[float]] = defaultdict(list)
        """The same of mlx_lm in a plain loop; empty if it cannot split the model."""
        self.exchanges: dict[int, tuple[int, float]] = {}
        """Number of exchanges of a step, and the milliseconds that they take alone."""
        self.first_token_ms: list[float] = []
        self.built_in_step_ms: list[float] = []
        self.weights_mb: list[float] = []
        """Weights of each rank."""
        self.peak_mb = 0.0
        """Peak of the rank that used the most."""


def measure(folder: Path, tokens: int, rounds: int, ranks: list[int]) -> Iterator[Result]:
    """Measure one process and each number of ranks in turns.

    Args:
        folder: The model folder.
        tokens: Length of each stream, in tokens.
        rounds: How often everything is measured.
        ranks: The numbers of processes besides one.
    """
    sizes = list(dict.fromkeys((1, *ranks)))
    runs = {size: _Runs() for size in sizes}
    with tempfile.TemporaryDirectory() as copy:
        model = workload.copy_without_eos(folder, Path(copy), CONTEXT)
        for _ in range(rounds):
            for size, measured in runs.items():
                _measure_worker(str(model), tokens, size, measured)
                _measure_plain(model, tokens, size, measured)
    for size in sizes:
        yield from _results(size, runs[size], runs[1])
    yield _record_cost()


def _measure_worker(model: str, tokens: int, size: int, runs: _Runs) -> None:
    options = ("--ranks", str(size)) if size > 1 else ()
    with WorkerProcess(*options) as worker:
        loaded = worker.ask(Load(path=model))
        for streams in STREAMS:
            requests = workload.greedy(streams, tokens)
            worker.rate(requests)  # the first of a shape compiles
            runs.rates[streams].append(worker.decode_rate(requests))
        first_token_ms = 0.0
        for prompt in (workload.long_prompt(PROMPT_TOKENS, 1),) * 2:
            started = perf_counter()
            worker.ask(prompt)
            first_token_ms = (perf_counter() - started) * 1000
        runs.first_token_ms.append(first_token_ms)
        weights = loaded["ranks"]["weights_bytes"] if size > 1 else [loaded["weights_bytes"]]
        runs.weights_mb = [each / 1e6 for each in weights]
        runs.peak_mb = worker.ask(Stats())["memory"]["peak_bytes"] / 1e6
        worker.ask(Load(path=BUILT_IN))
        worker.rate(workload.ignoring_eos(1, tokens))
        runs.built_in_step_ms.append(1000 / worker.decode_rate(workload.ignoring_eos(1, tokens)))


def _measure_plain(model: Path, tokens: int, size: int, runs: _Runs) -> None:
    """Measure mlx_lm in a plain loop, if it can split the model."""
    try:
        with _PlainRanks(model, size) as plain:
            for streams in STREAMS:
                plain.run(streams, tokens)
                run = plain.run(streams, tokens)
                runs.plain_rates[streams].append(run["rate"])
                runs.exchanges[streams] = run["exchanges"], run["exchanged_ms"]
    except CliError:
        runs.plain_rates.clear()


class _PlainRanks(ExitStack):
    """Processes in which mlx_lm generates, one for each rank.

    Args:
        model: The model folder.
        size: Number of processes.
    """

    def __init__(self, model: Path, size: int) -> None:
        super().__init__()
        backend, hosts = default_backend(), local_hosts(size)
        shared = group_environment(hosts, backend)
        variables = dict(shared.variables)
        folder = Path(self.enter_context(tempfile.TemporaryDirectory()))
        for name, content in shared.files.items():
            (folder / name).write_text(content)
            variables[name] = str(folder / name)
        command = python_command(f"{processes.__package__}.mlx_lm_ranks", str(model), backend)
        self._ranks = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=child_environment() | (variables | rank_environment(hosts, backend, rank) if size > 1 else {}),
            )
            for rank in range(size)
        ]
        for rank in self._ranks:
            self.callback(rank.wait)
            self.callback(rank.kill)
        self._read()

    def run(self, streams: int, tokens: int) -> dict[str, Any]:
        """Return the measurements of rank 0.

        Args:
            streams: Number of streams in one batch.
            tokens: Length of each stream, in tokens.
        """
        for rank in self._ranks:
            assert rank.stdin is not None
            rank.stdin.write(b"%d %d\n" % (streams, tokens))
            rank.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        """Return what rank 0 says, once all ranks have said something."""
        lines = [rank.stdout.readline() for rank in self._ranks if rank.stdout]
        if not all(lines):
            raise CliError("a process of the benchmark ended early")
        return json.loads(lines[0])


def _results(size: int, runs: _Runs, alone: _Runs) -> Iterator[Result]:
    named = "1 process" if size == 1 else f"{size} ranks"
    for streams in STREAMS:
        many = f"{streams} stream{'s' * (streams > 1)}, {named}"
        if size > 1:
            pairs = list(zip(alone.rates[streams], runs.rates[streams], strict=True))
            yield speed_ratio(f"{many} against one process", pairs, 1.0, "tok/s")
        if plain := runs.plain_rates.get(streams):
            pairs = list(zip(plain, runs.rates[streams], strict=True))
            yield speed_ratio(f"{many} against mlx_lm's plain loop", pairs, 0.9, "tok/s")
        if runs.exchanges.get(streams, (0, 0))[0]:
            count, alone_ms = runs.exchanges[streams]
            step_ms = 1000 * streams / median(runs.rates[streams])
            detail = f"{count} exchanges; a step takes {step_ms:.3f} ms"
            yield Result(f"exchanges of a step alone, {many}", alone_ms, "ms", step_ms / 2, detail)
    if size > 1:
        yield from _costs(size, runs, alone)


def _costs(size: int, runs: _Runs, alone: _Runs) -> Iterator[Result]:
    first, first_alone = median(runs.first_token_ms), median(alone.first_token_ms)
    detail = f"{first_alone:.0f} ms in one process"
    yield Result(f"first token of {PROMPT_TOKENS:,} tokens, {size} ranks", first, "ms", first_alone, detail)
    (weights_mb,) = alone.weights_mb
    detail = f"{_listed(runs.weights_mb)}; {weights_mb:.0f} in one process"
    yield Result(f"weights of the largest rank of {size}", max(runs.weights_mb), "MB", 0.6 * weights_mb, detail)
    detail = f"{alone.peak_mb:.0f} MB in one process"
    yield Result(f"MLX's peak memory in the fullest rank of {size}", runs.peak_mb, "MB", 0.6 * alone.peak_mb, detail)
    step, step_alone = median(runs.built_in_step_ms), median(alone.built_in_step_ms)
    detail = f"{step:.3f} ms against {step_alone:.3f} ms"
    yield Result(f"added to a step of {BUILT_IN} by {size} ranks", step - step_alone, "ms", 1.0, detail)


def _listed(sizes: Sequence[float]) -> str:
    return ", ".join(f"{size:.0f}" for size in sizes)


def _record_cost() -> Result:
    """Return the processor time in which rank 0 sends the record of a step to a follower."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        assert reader.stdin is not None
        writer = FrameWriter(reader.stdin.fileno())
        started = process_time()
        sizes = [writer.write("step", CHECKSUM) for _ in range(RECORDS)]
        record_ms = 1000 * (process_time() - started) / RECORDS
        reader.stdin.close()
    detail = f"{1000 * record_ms:.1f} µs and {sizes[0]} bytes for each follower"
    return Result("record of a step, processor time", record_ms, "ms", 0.05, detail)
