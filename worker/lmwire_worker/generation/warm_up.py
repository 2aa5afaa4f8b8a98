"""Run trial prompts on a new model, so that the kernels are compiled before the first request."""

import contextlib
from typing import Final

import mlx.core as mx

from lmwire_protocol import Generate, RequestError

from ..engine.interface import Failed, InsufficientMemory, Report, TokenDelta
from .runner import GenerationRunner

PROMPT_LENGTHS: Final = (3, 11, 6)
"""Tokens of the trial prompts. They differ, so that a common prefill needs padding."""
ANSWER_TOKENS: Final = 4


def warm_up(runner: GenerationRunner, report: Report) -> None:
    """Run trial prompts alone and together.

    Args:
        runner: The runner of the model.
        report: Receives the progress.

    Raises:
        RequestError: bad_model, if the model fails on them.
        LoadCancelled: from `report`, between two steps.
    """
    lengths = [min(length, runner.model.context_len) for length in PROMPT_LENGTHS]
    prompts = [[(7 * length + index) % runner.model.vocab_size for index in range(length)] for length in lengths]
    requests = [Generate(prompt=prompt, max_tokens=ANSWER_TOKENS, cache="off") for prompt in prompts]
    if mx.default_device() == mx.cpu:  # its few kernels serve texts of all lengths, and stay on disk once compiled
        requests = []
    sampled = Generate(prompt=prompts[0], max_tokens=2, cache="off", temperature=1, top_p=0.9, repetition_penalty=1.1)
    trial = _TrialRun(runner, report, total=2 * len(requests) * ANSWER_TOKENS + 2)
    trial.run([sampled])
    for request in requests:
        trial.run([request])
    if runner.max_batch_size > 1:
        runner.enable_padding()
        trial.run(requests)
    report("warm_up", trial.total, trial.total, "steps")


class _TrialRun:
    def __init__(self, runner: GenerationRunner, report: Report, total: int) -> None:
        self._runner = runner
        self._report = report
        self.total = total
        self._done = 0

    def run(self, requests: list[Generate]) -> None:
        """Run requests together to their ends. Requests that do not fit into memory are left out."""
        running = 0
        with contextlib.suppress(InsufficientMemory):
            for key, request in enumerate(requests):
                self._runner.add(key, request, seed=0)
                running += 1
        while running:
            self._report("warm_up", self._done, self.total, "steps")
            for outcome in self._runner.step():
                if isinstance(outcome, Failed):
                    problem = f"{self._runner.model.path} loads, but fails on a first prompt: {outcome.error.message}"
                    raise RequestError("bad_model", problem)
                if isinstance(outcome, TokenDelta):
                    self._done += outcome.generated
                    running -= outcome.finish_reason is not None
