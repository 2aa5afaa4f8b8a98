"""Examples as rows of tokens, ready to learn from."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np
from tokenizers import Tokenizer

from lessons import Example, Source, make
from vocabulary import Renderer

SHIFT: Final = 1_000_000
"""Seeds of one batch; more than any batch has examples."""


@dataclass
class Batch:
    """Rows of examples, one after the other.

    Attributes:
        tokens: int16, rows by row length, padded with 0.
        example: int16: which example of its row a token belongs to, from 1; 0 is padding.
        targets: int16: the token that comes next where it is part of an answer, otherwise -1.
    """

    tokens: np.ndarray
    example: np.ndarray
    targets: np.ndarray


class Corpus:
    """The text of one seed, without end; each batch can be made for itself, in any process."""

    def __init__(self, tokenizer: Tokenizer, rows: int, length: int, seed: int) -> None:
        self._tokenizer = tokenizer
        self._shape = rows, length
        self._seed = seed
        self._renderer = Renderer()

    def batch(self, index: int) -> Batch:
        """Batch number `index`, of training examples, filled until an example fits into no row."""
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
        """The tokens of the prompt and of the answer, its end included."""
        prompt = self._tokenizer.encode(self._renderer.prompt(example), add_special_tokens=False).ids
        return prompt, self._tokenizer.encode(self._renderer.turn(example), add_special_tokens=False).ids


def examples(seed: int, *, held_out: bool = False) -> Iterator[Example]:
    """Examples without end."""
    return (make(Source(number, held_out=held_out)) for number in count(seed))


def texts(seed: int, amount: int) -> Iterator[str]:
    """Training examples as text, for the tokenizer to learn from."""
    renderer = Renderer()
    for number in range(seed, seed + amount):
        example = make(Source(number))
        yield renderer.prompt(example) + renderer.turn(example)
