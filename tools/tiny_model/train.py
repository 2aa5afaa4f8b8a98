"""Train the built-in model from random weights, and write it in the folder format that mlx-lm loads.

This takes minutes on one GPU. `--steps 300` runs anywhere: it shows that the model learns, but it learns little.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx import optimizers
from mlx.nn.losses import cross_entropy
from mlx.nn.utils import value_and_grad
from mlx.utils import tree_flatten
from mlx_lm.models.qwen3 import Model, ModelArgs
from tokenizers import Tokenizer

from corpus import Batch, Corpus, texts
from vocabulary import END_OF_TURN, train_tokenizer, write_tokenizer

SHAPE: Final[dict[str, Any]] = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 1280,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "intermediate_size": 768,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
"""The fields of config.json."""


@dataclass
class Plan:
    """The settings of a training.

    Attributes:
        steps: Updates of the weights.
        rows: Rows of a batch.
        length: Tokens of a row.
        rate: The highest learning rate.
        vocabulary_texts: Examples that the tokenizer learns from.
        seed: Fixes the text and the initial weights.
        processes: Processes that make the text; 0 to make it in this one.
    """

    steps: int = 6000
    rows: int = 64
    length: int = 1024
    rate: float = 2e-3
    vocabulary_texts: int = 60_000
    seed: int = 0
    processes: int = 8


def train(folder: Path, plan: Plan, shape: dict[str, Any]) -> float:
    """Train a model, and write it. Return its last loss, in nats per token of an answer.

    Args:
        folder: Receives the model.
        plan: The settings.
        shape: The model's config.json.
    """
    mx.random.seed(plan.seed)
    tokenizer = train_tokenizer(texts(-plan.vocabulary_texts, plan.vocabulary_texts), shape["vocab_size"])
    model = Model(ModelArgs.from_dict(shape))
    rate = optimizers.join_schedules(
        [
            optimizers.linear_schedule(0, plan.rate, max(1, plan.steps // 50)),
            optimizers.cosine_decay(plan.rate, plan.steps, plan.rate / 100),
        ],
        [max(1, plan.steps // 50)],
    )
    optimizer = optimizers.AdamW(rate, betas=[0.9, 0.98], weight_decay=0.05)
    state = [model.state, optimizer.state]

    def step(tokens: mx.array, example: mx.array, targets: mx.array) -> mx.array:
        loss, gradients = value_and_grad(model, loss_of)(model, tokens, example, targets)
        gradients, _ = optimizers.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        return loss

    if mx.default_device() == mx.gpu:  # on a CPU this would need a C++ compiler
        step = mx.compile(step, inputs=state, outputs=state)
    started, losses = time.perf_counter(), []
    for number, batch in enumerate(batches(tokenizer, plan), 1):
        loss = step(*(mx.array(part.astype(np.int32)) for part in (batch.tokens, batch.example, batch.targets)))
        mx.eval(loss, state)
        losses.append(loss.item())
        if number % max(1, plan.steps // 40) == 0:
            speed = number * plan.rows * plan.length / (time.perf_counter() - started)
            recent = sum(losses[-50:]) / len(losses[-50:])
            print(f"step {number} of {plan.steps}: loss {recent:.4f}, {speed:,.0f} tokens/s", flush=True)
    export(folder, model, tokenizer, shape)
    return sum(losses[-50:]) / len(losses[-50:])


def loss_of(model: Model, tokens: mx.array, example: mx.array, targets: mx.array) -> mx.array:
    """Return the mean cross-entropy over the tokens of answers. Examples of one row do not attend to each other.

    Args:
        model: The model.
        tokens: Rows of tokens.
        example: For each token, the index of its example in the row.
        targets: For each token, the next token if it is part of an answer, otherwise -1.
    """
    same = example[:, None, :, None] == example[:, None, None, :]
    mask = same & mx.tril(mx.ones((tokens.shape[1], tokens.shape[1]), mx.bool_))
    hidden = model.model.embed_tokens(tokens)
    for layer in model.layers:
        hidden = layer(hidden, mask)
    logits = model.model.embed_tokens.as_linear(model.model.norm(hidden))
    learnt = targets >= 0
    losses = cross_entropy(logits, mx.maximum(targets, 0))
    return (losses * learnt).sum() / learnt.sum()


def batches(tokenizer: Tokenizer, plan: Plan) -> Iterator[Batch]:
    """Yield the batches of a plan, in order.

    Args:
        tokenizer: Encodes the examples.
        plan: The settings.
    """
    corpus = Corpus(tokenizer, plan.rows, plan.length, plan.seed)
    if plan.processes == 0:
        yield from map(corpus.batch, range(plan.steps))
        return
    # A process that uses the GPU must not fork.
    with multiprocessing.get_context("spawn").Pool(plan.processes, _prepare, (tokenizer.to_str(), plan)) as pool:
        yield from pool.imap(_make, range(plan.steps))


def export(folder: Path, model: Model, tokenizer: Tokenizer, shape: dict[str, Any]) -> None:
    """Write a model in the format of mlx-lm.

    Args:
        folder: Receives the model.
        model: The trained model.
        tokenizer: Its tokenizer.
        shape: Its config.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = shape | {"eos_token_id": tokenizer.token_to_id(END_OF_TURN)}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    # bfloat16 values stored as float32: a wheel compresses them to half their size, and float32 is fastest on a CPU.
    parameters: Any = tree_flatten(model.parameters())
    weights = {name: value.astype(mx.bfloat16).astype(mx.float32) for name, value in parameters}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    write_tokenizer(tokenizer, folder, shape["max_position_embeddings"])


_corpus: Corpus
"""The corpus of this process of the pool."""


def _prepare(tokenizer: str, plan: Plan) -> None:
    global _corpus  # noqa: PLW0603
    _corpus = Corpus(Tokenizer.from_str(tokenizer), plan.rows, plan.length, plan.seed)


def _make(index: int) -> Batch:
    return _corpus.batch(index)


def main() -> None:
    """Train a model with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="OUT")
    parser.add_argument("--steps", type=int, default=Plan.steps)
    parser.add_argument("--rows", type=int, default=Plan.rows, help="rows of 1,024 tokens in a batch (%(default)s)")
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument(
        "--processes", type=int, default=Plan.processes, help="processes that make the text (%(default)s)"
    )
    arguments = vars(parser.parse_args())
    folder = arguments.pop("folder")
    train(folder, Plan(**arguments), SHAPE)


if __name__ == "__main__":
    main()
