"""Random answers that follow constraints: each token is any that the constraint allows."""

import random
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from lmwire_protocol import Chat, Generate, Tool
from lmwire_protocol.messages import Function
from lmwire_worker.generation.structured_output.constraint import Constraint
from lmwire_worker.generation.structured_output.constraint_factory import ConstraintFactory
from lmwire_worker.generation.structured_output.token_masks import TokenMasks
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.output_parsing import Syntax
from lmwire_worker.tool_parsers import ToolFormat
from random_model import write_model

CLOSING = tuple("\"}])<\n{`'")
"""Characters that close a value, or begin a call."""
LIMIT = 2000
"""Maximum number of tokens in an answer."""


def write_tokenizer(folder: Path, special: Sequence[str], plain: Sequence[str] = ()) -> Tokenizer:
    """Write a tiny model, and return its tokenizer with these special and plain tokens added."""
    write_model(folder, "llama", vocab_size=512)
    file = folder / "tokenizer.json"
    tokenizer = Backend.from_file(str(file))
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    tokenizer.add_tokens([AddedToken(text, special=False) for text in plain])
    tokenizer.save(str(file))
    return load_tokenizer(folder, {}, trust_remote_code=False)


class Speaker:
    """A writer of random answers that constraints allow.

    Args:
        tokenizer: The model's tokenizer.
        form: The model's format of tool calls.
        model_type: The model's family.
    """

    def __init__(self, tokenizer: Tokenizer, form: ToolFormat | None = None, model_type: str = "llama") -> None:
        self.tokenizer = tokenizer
        self.size = len(tokenizer)
        self.ends = set(tokenizer.eos_token_ids)
        self.syntax = Syntax.of(tokenizer, model_type, form)
        self.grammars = ConstraintFactory(tokenizer, self.size, self.ends)
        texts = [tokenizer.decode([token]) for token in range(self.size)]
        added = tokenizer.added_tokens_decoder
        self._ending = np.array([token in self.ends for token in range(self.size)])
        self._preferred = [
            np.array([token in added for token in range(self.size)]),
            np.array([text.startswith(CLOSING) for text in texts]),
            np.array([text.isalnum() and text.isascii() for text in texts]),
        ]

    def in_format(self, form: ToolFormat) -> "Speaker":
        """Return a speaker of the same model in another format. Both compile grammars in one sandbox."""
        other = copy(self)
        other.syntax = Syntax.of(self.tokenizer, "llama", form)
        return other

    def constraint(self, request: Generate | Chat, thinking: bool = False) -> Constraint:
        constraint = self.grammars.make_constraint(request, self.syntax, thinking)
        assert constraint is not None
        return constraint

    def say(self, request: Generate | Chat, seed: int = 0, *, thinking: bool = False) -> str:
        """Return a whole answer."""
        return self.say_each(request, [seed], thinking=thinking)[0]

    def say_each(self, request: Generate | Chat, seeds: Sequence[int], *, thinking: bool = False) -> list[str]:
        """Return the whole answer of each seed, in less time than one after another."""
        return self.follow([self.constraint(request, thinking) for _ in seeds], seeds)

    def follow(self, constraints: Sequence[Constraint | None], seeds: Sequence[int]) -> list[str]:
        """Return whole answers, generated together. A row without a constraint has an empty answer."""
        choices = [random.Random(seed) for seed in seeds]
        answers: list[list[int]] = [[] for _ in constraints]
        rows = [row for row, constraint in enumerate(constraints) if constraint is not None]
        newest = dict.fromkeys(rows, 0)
        for _ in range(LIMIT):
            masks = TokenMasks([constraints[row] for row in rows])
            allowed = allowed_tokens(masks, [newest[row] for row in rows], self.size)
            for row, tokens in zip(list(rows), allowed, strict=True):
                constraint = constraints[row]
                assert constraint is not None
                assert constraint.error is None, constraint.error
                newest[row] = self._choose(choices[row], tokens)
                if newest[row] in self.ends:
                    rows.remove(row)
                else:
                    answers[row].append(newest[row])
            if not rows:
                return [self.tokenizer.decode(answer) for answer in answers]
        raise AssertionError(f"no end after {LIMIT} tokens: {self.tokenizer.decode(answers[rows[0]])[:500]!r}")

    def _choose(self, choice: random.Random, allowed: np.ndarray) -> int:
        """Choose a token, mostly one that ends or closes something, so that answers end."""
        ending = allowed & self._ending
        if ending.any() and (not (allowed & ~ending).any() or choice.random() < 0.5):
            return int(choice.choice(np.flatnonzero(ending)))
        allowed = allowed & ~ending
        for preferred in self._preferred if choice.random() < 0.9 else ():
            if (allowed & preferred).any() and choice.random() < 0.5:
                return int(choice.choice(np.flatnonzero(allowed & preferred)))
        return int(choice.choice(np.flatnonzero(allowed)))


def allowed_tokens(masks: TokenMasks, newest: Sequence[int], size: int) -> np.ndarray:
    """Return the tokens that each row may have next: bool, [B, V]."""
    logits: Any = masks(mx.zeros((len(newest), size)), mx.array([*newest]))
    return np.isfinite(np.asarray(logits))


def tool(name: str = "get_weather", *, strict: bool = False, **properties: dict[str, Any]) -> Tool:
    """Return a tool whose parameters are all required."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return Tool(function=Function(name=name, parameters=schema, strict=strict))
