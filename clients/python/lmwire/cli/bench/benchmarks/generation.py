"""`lmwire bench generation`: cost of structured output and log-probabilities, against plain tokens."""

from collections.abc import Iterator
from pathlib import Path

from lmwire_protocol import Load

from .. import workload
from ..pairing import measure_pairs, speed_ratio
from ..programs.processes import WorkerProcess
from ..results import Result

_STREAMS = 32


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Result]:
    """Measure streams of one worker against plain streams of the same worker."""
    with WorkerProcess() as worker:
        model = worker.ask(Load(path=str(folder.resolve())))
        plain = workload.ignoring_eos(_STREAMS, tokens)
        compared = [
            (f"{_STREAMS} streams of JSON of {workload.SCHEMAS} schemas", workload.structured(_STREAMS, tokens), 0.85),
            (f"{_STREAMS} streams with 5 log-probabilities", workload.with_logprobs(plain, _STREAMS), 0.85),
            (f"{_STREAMS} streams, 1 of them with 5 log-probabilities", workload.with_logprobs(plain, 1), 0.97),
        ]
        for name, requests, target in compared:
            pairs = measure_pairs(rounds, lambda: worker.rate(plain), lambda requests=requests: worker.rate(requests))
            yield speed_ratio(f"{name}, against plain ones", pairs, target, "tok/s")
        alone, structured = workload.ignoring_eos(1, tokens), workload.structured(1, tokens)
        pairs = measure_pairs(rounds, lambda: worker.rate(alone), lambda: worker.rate(structured))
        vocabulary = f"{model['vocab_size']:,} tokens of vocabulary"
        yield speed_ratio(f"1 stream of JSON of a schema, against a plain one, {vocabulary}", pairs, 1.0, "tok/s")
