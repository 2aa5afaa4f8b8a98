"""Pack examples into rows of tokens for training."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np
from tokenizers import Tokenizer

from lessons import Example, Source, make
from vocabulary import Renderer

SHIFT: Final = 1_000_000
"""Number of seeds reserved for each batch: more than a batch has examples."""


@dataclass
class Batch:
    """Rows of examples, one after the other.

    Attributes:
        tokens: int16, rows by row length, padded with 0.
        example: int16: index of the token's example in its row, from 1; 0 for padding.
        targets: int16: the next token if it is part of an answer, otherwise -1.
    """

    tokens: np.ndarray
    example: np.ndarray
    targets: np.ndarray


class Corpus:
    """The endless training text of one seed. Any process can make any batch.

    Args:
        tokenizer: Encodes the examples.
        rows: Rows of a batch.
        length: Tokens of a row.
        seed: Fixes the text.
    """

    def __init__(self, tokenizer: Tokenizer, rows: int, length: int, seed: int) -> None:
        self._tokenizer = tokenizer
        self._shape = rows, length
        self._seed = seed
        self._renderer = Renderer()

    def batch(self, index: int) -> Batch:
        """Return batch number `index`, filled with examples until one fits into no row."""
        rows, length = self._shape
        batch = Batch(
            np.zeros((rows, length), np.int16),
            np.zeros((rows, length), np.int16),
            np.full((rows, length), -1, np.int16),
        )
        used = np.zeros(rows, np.int64)
        for example in examples((self._seed * 10_000 + index) * SHIFT):
            prompt, turn = self.encode(example)
            whole = prompt + turn
            fitting = np.flatnonzero(used + len(whole) <= length)
            if len(fitting) == 0:
                if len(whole) > length:
                    continue
                return batch
            row = fitting[0]
            start, end = used[row], used[row] + len(whole)
            batch.tokens[row, start:end] = whole
            batch.example[row, start:end] = batch.example[row].max() + 1
            batch.targets[row, end - len(turn) - 1 : end - 1] = turn
            used[row] = end
        raise AssertionError("examples do not end")

    def encode(self, example: Example) -> tuple[list[int], list[int]]:
        """Return the tokens of the prompt, and those of the answer with its end."""
        prompt = self._tokenizer.encode(self._renderer.prompt(example), add_special_tokens=False).ids
        return prompt, self._tokenizer.encode(self._renderer.turn(example), add_special_tokens=False).ids


def examples(seed: int, *, held_out: bool = False) -> Iterator[Example]:
    """Return an endless iterator of examples.

    Args:
        seed: Seed of the first example.
        held_out: True for examples of the evaluation, False for those of the training.
    """
    return (make(Source(number, held_out=held_out)) for number in count(seed))


def texts(seed: int, amount: int) -> Iterator[str]:
    """Yield training examples as text, to train the tokenizer.

    Args:
        seed: Seed of the first example.
        amount: Number of examples.
    """
    renderer = Renderer()
    for number in range(seed, seed + amount):
        example = make(Source(number))
        yield renderer.prompt(example) + renderer.turn(example)
