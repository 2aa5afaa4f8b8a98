"""The upper bound: a program in which mlx_vlm generates by itself. The benchmark starts it.

Each line on stdin, `STREAMS TOKENS 0 0`, starts a run about new images. Its reply on stdout is the tokens a second.
"""

# pyright: standard
# mlx_vlm has few types.

import io
import sys
import time
from pathlib import Path
from typing import Any

import mlx.core as mx
import PIL.Image
from mlx_vlm.generate.ar import BatchGenerator
from mlx_vlm.utils import load_model, load_processor

from ..workload import QUESTION, image_file


class NeverStop:
    """Stopping criteria that no token meets."""

    def __call__(self, token: int) -> bool:
        """Return whether the token ends the answer: it does not."""
        return False

    def add_eos_token_ids(self, tokens: Any) -> None:
        """Ignore the eos tokens; the batch calls this."""


def main() -> None:
    """Load the model in `sys.argv` and serve the runs on stdin."""
    folder = Path(sys.argv[1])
    model, processor = load_model(folder), load_processor(folder, add_detokenizer=False)
    processor.tokenizer.stopping_criteria = NeverStop()
    print("ready", flush=True)
    number = 0
    for line in sys.stdin:
        streams, tokens, *_ = map(int, line.split())  # the others are about prompts of text
        files = [image_file(number + stream) for stream in range(streams)]
        number += streams
        started = time.perf_counter()
        generated = _run_batch(model, processor, files, tokens)
        print(generated / (time.perf_counter() - started), flush=True)


def _run_batch(model: Any, processor: Any, files: list[bytes], tokens: int) -> int:
    generator = BatchGenerator(
        model.language_model,
        processor,
        max_tokens=tokens,
        completion_batch_size=len(files),
        prefill_batch_size=1,  # a larger batch changes mlx_vlm's answers
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
    generated = 0
    while generator.has_work:
        generated += len(generator.next()[1])
    generator.close()
    return generated


if __name__ == "__main__":
    main()
