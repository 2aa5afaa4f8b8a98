"""A check that requests have the same answers together as alone."""

import random
from collections.abc import Sequence

import pytest

from lmwire_protocol import Chat, Generate
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.generation_runners import Answer, Driver, choices


def asked(runner: GenerationRunner, requests: Sequence[Generate | Chat], seed: int = 0) -> list[list[Answer]]:
    """Return all choices of requests that arrive at random times."""
    driver = Driver(runner)
    chance = random.Random(seed)
    for key, request in enumerate(requests):
        driver.add(key, request, seed=key)
        driver.steps(chance.choice([0, 0, 1, 3]) if driver.running else 0)
    driver.finish()
    return [driver.choices[key] for key in range(len(requests))]


def check(runner: GenerationRunner, requests: Sequence[Generate | Chat]) -> list[Answer]:
    """Check that requests have the same answers together as alone, and return the first choice of each."""
    answers = asked(runner, requests)
    for key, (request, together) in enumerate(zip(requests, answers, strict=True)):
        for one, other in zip(together, choices(runner, request, seed=key), strict=True):
            assert (one.error, other.error) == (None, None)
            assert one.token_ids == other.token_ids, request
            assert _contents(one) == _contents(other)
            assert len(one.logprobs) == (len(one.token_ids) if request.logprobs else 0)
            for entry, lone in zip(one.logprobs, other.logprobs, strict=True):
                assert entry.logprob == pytest.approx(lone.logprob, abs=1e-3)
                assert len(entry.top) == request.top_logprobs
    return [first for first, *_ in answers]


def _contents(answer: Answer) -> tuple[object, ...]:
    calls = [(call.name, call.arguments, call.complete) for call in answer.calls]
    return answer.text, answer.reasoning, answer.finish_reason, answer.stop, calls
