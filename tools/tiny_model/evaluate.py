"""Score a model on prompts that its training text did not contain, ability by ability.

An answer is right if it has the expected text and ends the turn. Calls and JSON are right if they have the same values.
A worker answers the prompts with a schema, because it enforces the schema.
"""

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mlx_lm import load
from mlx_lm.generate import batch_generate

from corpus import examples
from lessons import Example
from lmwire import Worker
from vocabulary import Renderer

MOST_TOKENS: Final = 700


@dataclass
class Score:
    """The score of one ability: counts, and the wrong answers."""

    right: int = 0
    asked: int = 0
    wrong: list[tuple[Example, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Share of right answers, from 0 to 1."""
        return self.right / self.asked


def evaluate(folder: Path, amount: int, *, seed: int = 0, most_tokens: int = MOST_TOKENS) -> dict[str, Score]:
    """Ask held-out questions of each ability, and return the scores by ability.

    Args:
        folder: The model's folder.
        amount: Number of questions of each ability.
        seed: Fixes the questions.
        most_tokens: Maximum number of tokens of an answer.
    """
    chosen = held_out(amount, seed)
    free = [example for example in chosen if example.schema is None]
    held = [example for example in chosen if example.schema is not None]
    answers = _answers(folder, free, most_tokens) + _held_answers(folder, held, most_tokens)
    scores: dict[str, Score] = defaultdict(Score)
    for example, answer in zip(free + held, answers, strict=True):
        score = scores[example.ability]
        score.asked += 1
        if is_right(example, answer):
            score.right += 1
        else:
            score.wrong.append((example, answer))
    return dict(sorted(scores.items()))


def held_out(amount: int, seed: int = 0) -> list[Example]:
    """Return held-out examples.

    Args:
        amount: Number of examples of each ability.
        seed: Fixes the examples.
    """
    chosen: dict[str, list[Example]] = defaultdict(list)
    for tried, example in enumerate(examples(seed, held_out=True)):
        if len(chosen[example.ability]) < amount:
            chosen[example.ability].append(example)
        elif tried >= 100 * amount and all(len(some) == amount for some in chosen.values()):
            break
    return [example for some in chosen.values() for example in some]


def _answers(folder: Path, examples: list[Example], most_tokens: int) -> list[str]:
    model, tokenizer = load(str(folder))[:2]
    renderer = Renderer()
    prompts = [tokenizer.encode(renderer.prompt(example), add_special_tokens=False) for example in examples]
    return batch_generate(model, tokenizer, prompts, max_tokens=most_tokens).texts


def _held_answers(folder: Path, examples: list[Example], most_tokens: int) -> list[str]:
    renderer = Renderer()
    with Worker() as worker:
        worker.load(str(folder))
        streams = [
            worker.generate(
                renderer.prompt(example),
                max_tokens=most_tokens,
                format={"type": "json_schema", "schema": example.schema or {}},
            )
            for example in examples
        ]
        return [stream.answer().text for stream in streams]


def is_right(example: Example, answer: str) -> bool:
    """Return whether an answer has the expected meaning.

    Args:
        example: The example, with the expected answer.
        answer: The model's answer.
    """
    return _meaning(answer) == _meaning(example.answer)


def _meaning(answer: str) -> Any:
    """Return the values of calls and JSON, so that their spaces do not count; other text unchanged."""
    try:
        if answer.startswith("<tool_call>"):
            calls = answer.replace("</tool_call>", "").split("<tool_call>")[1:]
            return [json.loads(call) for call in calls]
        return json.loads(answer) if answer.startswith("{") else answer
    except ValueError:
        return answer


def main() -> None:
    """Print the scores of a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="MODEL")
    parser.add_argument("--amount", type=int, default=100, help="questions of each ability (%(default)s)")
    parser.add_argument("--wrong", type=int, default=0, help="wrong answers of each ability to show (%(default)s)")
    arguments = parser.parse_args()
    for ability, score in evaluate(arguments.folder, arguments.amount).items():
        print(f"| {ability} | {score.right} of {score.asked} |")
        for example, answer in score.wrong[: arguments.wrong]:
            print(f"    {example.messages[-1]['content']!r}")
            print(f"        should be {example.answer!r}\n        and was   {answer!r}")


if __name__ == "__main__":
    main()
