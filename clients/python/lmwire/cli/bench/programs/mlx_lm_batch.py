"""The upper bound: a program in which mlx_lm generates by itself. The benchmark starts it.

Each line on stdin, `STREAMS TOKENS LENGTH STEP`, starts a run. Its reply on stdout is the tokens a second. LENGTH is
the length of the prompt of one stream, 0 for a short one. STEP is by how many tokens each of several prompts is longer
than the one before.
"""

# pyright: standard
# mlx_lm has few types.

import sys
import time
from typing import Any

from mlx_lm import stream_generate
from mlx_lm.generate import BatchGenerator
from mlx_lm.utils import load

from ..workload import long_prompt, prompt


def main() -> None:
    """Load the model in `sys.argv` and serve the runs on stdin."""
    model, tokenizer, *_ = load(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        streams, tokens, length, step = map(int, line.split())
        started = time.perf_counter()
        if streams == 1:
            ids = long_prompt(length, tokens).prompt if length else prompt(0)
            generated = _run_one(model, tokenizer, ids, tokens)
        else:
            generated = _run_batch(model, [prompt(stream, step) for stream in range(streams)], tokens)
        print(generated / (time.perf_counter() - started), flush=True)


def _run_one(model: Any, tokenizer: Any, ids: Any, tokens: int) -> int:
    return sum(1 for _ in stream_generate(model, tokenizer, ids, max_tokens=tokens))


def _run_batch(model: Any, prompts: list[list[int]], tokens: int) -> int:
    generator = BatchGenerator(model, max_tokens=tokens, completion_batch_size=len(prompts))
    generator.insert(prompts)
    generated = 0
    while responses := generator.next_generated():
        generated += len(responses)
    return generated


if __name__ == "__main__":
    main()
