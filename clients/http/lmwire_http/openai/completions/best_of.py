"""The best of several answers to one prompt: those with the highest log-probability per token.

See https://platform.openai.com/docs/api-reference/completions/create#completions_create-best_of.
"""

from collections.abc import Sequence
from math import inf

from lmwire import Answer

from ...inference.answers import log_probability


def best_answers(answers: Sequence[Answer], n: int) -> list[Answer]:
    """Return the `n` best answers, the best first.

    Args:
        answers: The answers, with their log-probabilities.
        n: Number of answers to return.
    """
    return sorted(answers, key=_mean_logprob, reverse=True)[:n]


def _mean_logprob(answer: Answer) -> float:
    if not answer.logprobs:
        return -inf
    return sum(map(log_probability, answer.logprobs)) / len(answer.logprobs)
