"""The ceiling: what mlx_lm itself makes of a model in one process. A program of its own, started by the benchmark.

Each line on stdin, `STREAMS TOKENS`, is a run; its answer on stdout is the tokens made in a second.
"""

import sys
import time
from typing import Any

from mlx_lm import stream_generate
from mlx_lm.generate import BatchGenerator
from mlx_lm.utils import load

from .workload import prompt


def main() -> None:
    model, tokenizer, *_ = load(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        streams, tokens = map(int, line.split())
        started = time.perf_counter()
        made = _alone(model, tokenizer, tokens) if streams == 1 else _batch(model, streams, tokens)
        print(made / (time.perf_counter() - started), flush=True)


def _alone(model: Any, tokenizer: Any, tokens: int) -> int:
    return sum(1 for _ in stream_generate(model, tokenizer, prompt(0), max_tokens=tokens))


def _batch(model: Any, streams: int, tokens: int) -> int:
    generator = BatchGenerator(model, max_tokens=tokens, completion_batch_size=streams)
    generator.insert([prompt(stream) for stream in range(streams)])
    made = 0
    while responses := generator.next_generated():
        made += len(responses)
    return made


if __name__ == "__main__":
    main()
