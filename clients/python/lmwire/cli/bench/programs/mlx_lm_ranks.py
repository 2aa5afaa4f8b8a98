"""The peer of `lmwire worker --ranks`: a plain loop of mlx_lm over processes that hold a model together.

The benchmark starts one process for each rank. Each line on stdin, `STREAMS TOKENS`, starts a run on all of them, and
each replies on stdout with JSON.
"""

# pyright: standard
# mlx_lm has few types.

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import mlx.core as mx
from mlx_lm.generate import BatchGenerator
from mlx_lm.utils import load_model

from ..decode_rate import DecodeRate
from ..workload import prompt

REPEATS: Final = 20


def main() -> None:
    """Load the model in `sys.argv` as the rank that the environment names, and serve the runs on stdin."""
    model, config = load_model(Path(sys.argv[1]), lazy=True)
    network: Any = model
    if "MLX_RANK" in os.environ:
        network.shard(mx.distributed.init(strict=True, backend=sys.argv[2]))
    mx.eval(model.parameters())
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        streams, tokens = map(int, line.split())
        exchanges = _count_exchanges(model, streams)
        exchanged_s = _time_exchanges(exchanges, streams, config["hidden_size"])
        rate = _decode_rate(model, streams, tokens)
        print(json.dumps({"rate": rate, "exchanges": exchanges, "exchanged_ms": 1000 * exchanged_s}), flush=True)


def _decode_rate(model: Any, streams: int, tokens: int) -> float:
    """Return the tokens a second while all streams are decoded."""
    generator = BatchGenerator(model, max_tokens=tokens, completion_batch_size=streams)
    generator.insert([prompt(stream) for stream in range(streams)])
    decoded = DecodeRate(streams)
    while responses := generator.next_generated():
        for response in responses:
            decoded.note(response.uid, 1, is_last=response.finish_reason is not None)
    return decoded.rate


def _count_exchanges(model: Any, streams: int) -> int:
    """Return the number of sums over all ranks in a step."""
    count = 0
    exchange = mx.distributed.all_sum

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        return exchange(*arguments, **options)

    mx.distributed.all_sum = counted
    try:
        mx.eval(model(mx.zeros((streams, 1), mx.int32)))
    finally:
        mx.distributed.all_sum = exchange
    return count


def _time_exchanges(count: int, streams: int, width: int) -> float:
    """Return the time of the exchanges of a step alone, one after another, in seconds."""
    if not count:
        return 0.0
    times = []
    for _ in range(REPEATS):
        hidden = mx.zeros((streams, 1, width), mx.bfloat16)
        mx.eval(hidden)
        started = time.perf_counter()
        for _ in range(count):
            hidden = mx.distributed.all_sum(hidden) * 0.5
        mx.eval(hidden)
        times.append(time.perf_counter() - started)
    return median(times)


if __name__ == "__main__":
    main()
