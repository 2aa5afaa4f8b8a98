"""The ceiling: what mlx_vlm itself makes of a model in one process. A program of its own, started by the benchmark.

Each line on stdin, `STREAMS TOKENS`, is a run about new images; its answer on stdout is the tokens made in a second.
"""

import io
import sys
import time
from pathlib import Path
from typing import Any

import mlx.core as mx
import PIL.Image
from mlx_vlm.generate.ar import BatchGenerator
from mlx_vlm.utils import load_model, load_processor

from .workload import QUESTION, picture


class Endless:
    """Stopping criteria, with which nothing stops."""

    def __call__(self, token: int) -> bool:
        return False

    def add_eos_token_ids(self, tokens: Any) -> None:
        """Asked of it by the batch."""


def main() -> None:
    folder = Path(sys.argv[1])
    model, processor = load_model(folder), load_processor(folder, add_detokenizer=False)
    processor.tokenizer.stopping_criteria = Endless()
    print("ready", flush=True)
    number = 0
    for line in sys.stdin:
        streams, tokens = map(int, line.split())
        files = [picture(number + stream) for stream in range(streams)]
        number += streams
        started = time.perf_counter()
        made = _batch(model, processor, files, tokens)
        print(made / (time.perf_counter() - started), flush=True)


def _batch(model: Any, processor: Any, files: list[bytes], tokens: int) -> int:
    generator = BatchGenerator(
        model.language_model,
        processor,
        max_tokens=tokens,
        completion_batch_size=len(files),
        prefill_batch_size=1,  # with more, mlx_vlm's answers are others
        compute_logprobs=False,
        greedy_sampling=True,
        sampler=lambda logprobs: mx.argmax(logprobs, axis=-1),
    )
    content = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    text = processor.tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    for file in files:
        image = PIL.Image.open(io.BytesIO(file)).convert("RGB")
        inputs = dict(processor(text=[text], images=[image], add_special_tokens=False, return_tensors="mlx"))
        ids, pixels = mx.array(inputs.pop("input_ids")), inputs.pop("pixel_values")
        mask = mx.array(inputs.pop("attention_mask"))
        features = model.get_input_embeddings(ids, pixels, mask=mask, **inputs).to_dict()
        given = {name: value for name, value in (inputs | features).items() if value is not None}
        generator.insert([ids.flatten().tolist()], max_tokens=[tokens], prompt_kwargs=[given])
    made = 0
    while generator.has_work:
        made += len(generator.next()[1])
    generator.close()
    return made


if __name__ == "__main__":
    main()
