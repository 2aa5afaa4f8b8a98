"""Models whose own code misbehaves, for a real engine in real trouble. They load only with trust_remote_code."""

from pathlib import Path

from random_model import write_custom_model

_HEAD = """
import ctypes, os, subprocess, sys, time
from dataclasses import dataclass
import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import KVCache

@dataclass
class ModelArgs:
    model_type: str = "custom"
    vocab_size: int = 272
    @classmethod
    def from_dict(cls, config):
        return cls(vocab_size=config["vocab_size"])

class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.weight = mx.ones(1)

    @property
    def layers(self):
        return [None]

    def logits(self, tokens, cache):
        # The cache only counts, as any cache of a batch must.
        if cache is not None:
            cache[0].update_and_fetch(*(mx.zeros((*tokens.shape[:1], 1, tokens.shape[1], 1)),) * 2)
        wanted = (tokens + 1) % 256
        return mx.where(mx.arange(self.args.vocab_size) == wanted[..., None], 1.0, 0.0) * self.weight

    def __call__(self, tokens, cache=None, **_):
        logits = self.logits(tokens, cache)
"""

PRINTS = """
        print("PRINTED by Python")
        os.write(1, b"PRINTED by os.write\\n")
        libc = ctypes.CDLL(None)
        libc.printf(b"PRINTED by C\\n")
        libc.fflush(None)
        subprocess.run(["/bin/sh", "-c", "echo PRINTED by a child; cat"], check=True)
        return logits
"""
"""A model that prints to stdout in every possible way, and reads stdin to its end."""

MARK = 200
"""A token that the two below wait for: without it they are well."""

SLOW = f"""
        if (tokens == {MARK}).any().item():
            x = mx.ones((1500, 1500)) / 1500
            for _ in range(20_000):
                x = x @ x
            logits = logits + 0 * x[0, 0]
        return logits
"""
"""A model that spends half a minute and more in one evaluation, which nothing can interrupt."""

SLEEPS = """
        time.sleep(0.15)
        return logits
"""
"""A model with slow steps, so that its warm-up can be observed."""

RAISES = f"""
        if (tokens == {MARK}).any().item():
            raise RuntimeError("the model's own trouble")
        return logits
"""

CRASHES = f"""
        if (tokens == {MARK}).any().item():
            ctypes.string_at(8)
        return logits
"""
"""A model that reads an invalid address."""

ABORTS = f"""
        if (tokens == {MARK}).any().item():
            print("assertion failed: MARK", file=sys.stderr, flush=True)
            os.abort()
        return logits
"""
"""A model that ends the process as a failed assertion in native code does."""

LEAVES = f"""
        if (tokens == {MARK}).any().item():
            os._exit(3)
        return logits
"""
"""A model that exits without an error."""


def write_misbehaving_model(folder: Path, behaviour: str) -> Path:
    """Write a model with one of the behaviours above. A well-behaved one answers each byte with the next."""
    # The context is long, so that an answer still goes on when a slow test looks at it.
    return write_custom_model(folder, _HEAD + behaviour, max_position_embeddings=1_000_000)
