"""`lmwire bench generation`: what requests cost that ask for more than plain tokens, against plain ones."""

from collections.abc import Iterator
from pathlib import Path

from lmwire_protocol import Load

from . import workload
from .figures import Figure
from .peer import Worker
from .turns import extra_ms, in_turns, ratio

_STREAMS = 32


def measure(folder: Path, tokens: int, rounds: int) -> Iterator[Figure]:
    with Worker() as worker:
        model = worker.ask(Load(path=str(folder.resolve())))
        plain = workload.plain(_STREAMS, tokens)
        compared = [
            (f"{_STREAMS} streams of JSON of {workload.SCHEMAS} schemas", workload.structured(_STREAMS, tokens), 0.85),
            (f"{_STREAMS} streams with 5 log-probabilities", workload.with_logprobs(plain, _STREAMS), 0.85),
            (f"{_STREAMS} streams, 1 of them with 5 log-probabilities", workload.with_logprobs(plain, 1), 0.97),
        ]
        for name, requests, target in compared:
            pairs = in_turns(rounds, lambda: worker.rate(plain), lambda requests=requests: worker.rate(requests))
            yield ratio(f"{name}, against plain ones", pairs, target, "tok/s")
        alone, structured = workload.plain(1, tokens), workload.structured(1, tokens)
        pairs = in_turns(rounds, lambda: worker.rate(alone), lambda: worker.rate(structured))
        vocabulary = f"{model['vocab_size']:,} tokens of vocabulary"
        yield extra_ms(f"a token of JSON of a schema, over a plain one, {vocabulary}", pairs, 0.3, "a token")
