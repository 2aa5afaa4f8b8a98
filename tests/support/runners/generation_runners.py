"""Helpers that drive text runners as the scheduler does, and return the answers of mlx-lm to compare with."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import mlx_lm
import pytest

from lmwire_protocol import Chat, Generate, Load, Message, RequestError, Tokenize
from lmwire_protocol.events import Logprob
from lmwire_worker.engine.interface import Failed, PrefillProgress, RunnerEvent, TokenDelta, ToolCallDelta
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.loading.model_loader import MlxModelLoader
from support.nightly import nightly_but
from support.process.worker_process import SECONDS

FAMILIES = ("llama", "qwen3", "gemma3_text", "mamba", "qwen3_next")
EACH_FAMILY = nightly_but({"gemma3_text", "qwen3_next"}, FAMILIES)
"""The families as a test's parameter. Those two have every kind of cache: keys and values, a window of them, states.
At night the others run too, which have one kind each."""

FolderOf = Callable[[str], Path]
"""Function that returns the folder of a tiny model of a family."""
RunnerOf = Callable[[str], GenerationRunner]
"""Function that returns a family's runner, opened once. Tests must not leave requests in it."""
SliceShape = tuple[int, int]
"""Number of prompts that the model computes at once, and of tokens of each."""


class SteadyPolicy(PrefillPolicy):
    """Takes each step for as long as one of a small model on a quiet machine, however long it took."""

    def record_step(self, seconds: float, running: int, prompts: int, tokens: int, at: int) -> None:
        seconds = 0.001 * bool(running) + (0.0015 + 2e-5 * prompts * tokens if tokens else 0.0)
        super().record_step(seconds, running, prompts, tokens, at)


@dataclass
class Call:
    """A tool call, joined from its pieces."""

    call_id: str | None = None
    name: str | None = None
    arguments: str = ""
    complete: bool | None = None


@dataclass
class Answer:
    """All output of one choice."""

    text: str = ""
    """Text of the content channel."""
    reasoning: str = ""
    reasoning_tokens: int = 0
    parts: list[str] = field(default_factory=list)
    """Texts of both channels, in the order of their arrival."""
    calls: list[Call] = field(default_factory=list)
    logprobs: list[Logprob] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    generated: int = 0
    finish_reason: str | None = None
    stop: str | None = None
    error: RequestError | None = None
    cached: int | None = field(default=None, compare=False)
    """Tokens of the prompt that were cached, as its first progress says."""
    prefilled: list[tuple[int, int]] = field(default_factory=list, compare=False)
    """Progress of the prompt as (done, total) after each slice. A busy machine affects the number of slices."""


class Driver:
    """A runner, and the output of the requests in it."""

    def __init__(self, runner: GenerationRunner) -> None:
        self.runner = runner
        self.choices: dict[int, list[Answer]] = {}
        self.unfinished: dict[int, int] = {}

    @property
    def answers(self) -> dict[int, Answer]:
        """First choice of each request."""
        return {key: choices[0] for key, choices in self.choices.items()}

    @property
    def running(self) -> set[int]:
        return set(self.unfinished)

    def add(self, key: int, request: Generate | Chat, seed: int = 0, *, raw: bool = False) -> None:
        self.runner.add(key, request, seed, plain_text=raw, prepared=gather(self.runner, request))
        self.choices[key] = [Answer() for _ in range(request.n)]
        self.unfinished[key] = request.n

    def remove(self, key: int) -> Answer:
        for outcome in self.runner.remove(key):
            self._take(outcome)
        del self.unfinished[key]
        return self.answers[key]

    def step(self) -> None:
        """Make a step. One that only starts requests does not count."""
        outcomes = self.runner.step()
        if outcomes and all(self._is_start(outcome) for outcome in outcomes):
            self._take_all(outcomes)
            outcomes = self.runner.step()
        self._take_all(outcomes)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def finish(self) -> dict[int, Answer]:
        while self.unfinished:
            self.step()
        return self.answers

    def _is_start(self, outcome: RunnerEvent) -> TypeGuard[PrefillProgress]:
        return isinstance(outcome, PrefillProgress) and self.choices[outcome.key][0].cached is None

    def _take_all(self, outcomes: Iterable[RunnerEvent]) -> None:
        for outcome in outcomes:
            assert outcome.key in self.unfinished, "an outcome after the end"
            self._take(outcome)

    def _take(self, outcome: RunnerEvent) -> None:
        choices = self.choices[outcome.key]
        if self._is_start(outcome):
            choices[0].cached = outcome.done
        elif isinstance(outcome, PrefillProgress):
            choices[0].prefilled.append((outcome.done, outcome.total))
        elif isinstance(outcome, Failed):
            choices[0].error = outcome.error
            del self.unfinished[outcome.key]
        elif isinstance(outcome, ToolCallDelta):
            self._take_call(choices[outcome.choice], outcome)
        else:
            assert isinstance(outcome, TokenDelta)
            answer = choices[outcome.choice]
            assert answer.finish_reason is None, "a piece after the choice's end"
            answer.parts.append(outcome.text)
            if outcome.channel == "reasoning":
                answer.reasoning += outcome.text
            else:
                answer.text += outcome.text
            answer.token_ids += outcome.token_ids
            answer.logprobs += outcome.logprobs or []
            answer.generated += outcome.generated
            answer.reasoning_tokens += outcome.reasoning_tokens
            answer.finish_reason, answer.stop = outcome.finish_reason, outcome.stop
            if outcome.finish_reason is not None:
                self.unfinished[outcome.key] -= 1
                if not self.unfinished[outcome.key]:
                    del self.unfinished[outcome.key]

    def _take_call(self, answer: Answer, delta: ToolCallDelta) -> None:
        if delta.index == len(answer.calls):
            answer.calls.append(Call(delta.call_id, delta.name))
            assert delta.name, "a call's first piece has its name"
        call = answer.calls[delta.index]
        assert call.complete is None, "a piece after the call's end"
        call.arguments += delta.arguments
        call.complete = delta.complete


def gather(runner: GenerationRunner, request: Generate | Chat | Tokenize) -> Any:
    """Prepare a request, and return the preparation once it is ready."""
    there = threading.Event()
    gathering = runner.prepare(request, there.set)
    assert there.wait(SECONDS)
    return gathering


def ask(runner: GenerationRunner, *requests: Generate | Chat, seeds: Sequence[int] = ()) -> list[Answer]:
    """Return the answers to requests that run together."""
    driver = Driver(runner)
    for key, request in enumerate(requests):
        driver.add(key, request, seeds[key] if seeds else 0)
    return list(driver.finish().values())


def ask_alone(runner: GenerationRunner, *requests: Generate | Chat, seeds: Sequence[int] = ()) -> list[Answer]:
    """Return the answers to requests that run one after another."""
    return [ask(runner, request, seeds=seeds[i : i + 1])[0] for i, request in enumerate(requests)]


def choices(runner: GenerationRunner, request: Generate | Chat, seed: int = 0) -> list[Answer]:
    """Return all choices of one request."""
    driver = Driver(runner)
    driver.add(0, request, seed)
    driver.finish()
    return driver.choices[0]


def runners(folder_of: FolderOf) -> RunnerOf:
    """Return a function that opens each family's runner when it is first needed."""
    return cache(lambda family: open_runner(folder_of(family)))


def open_runner(folder: Path, **fields: Any) -> GenerationRunner:
    """Load a model with a new loader, and return its runner."""
    return _open(folder, fields, replace=lambda: None)


def refusal(folder: Path, **fields: Any) -> RequestError:
    """Return the error of a load that is refused before the current model is released."""
    replaced: list[bool] = []
    with pytest.raises(RequestError) as refused:
        _open(folder, fields, lambda: replaced.append(True))
    assert not replaced
    return refused.value


def _open(folder: Path, fields: dict[str, Any], replace: Callable[[], None]) -> GenerationRunner:
    engine = MlxModelLoader()
    engine.prepare()
    runner = engine.open(Load(path=str(folder), **fields), lambda *_: None, replace)
    assert isinstance(runner, GenerationRunner)
    runner.policy = SteadyPolicy()
    runner.step_speeds = None  # a busy machine would decide how wide a step is
    runner.discard_batch()  # that of the load's trial has them
    return runner


@cache
def stock(folder: Path, trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Return the model and its tokenizer as mlx-lm itself loads them."""
    model, tokenizer, *_ = mlx_lm.load(str(folder), trust_remote_code=trust_remote_code)
    return model, tokenizer


def expected(folder: Path, request: Generate | Chat, trust_remote_code: bool = False) -> Answer:
    """Return the answer of mlx-lm's single-stream generation, by greedy decoding."""
    model, tokenizer = stock(folder, trust_remote_code)
    if isinstance(request, Chat):
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    else:
        prompt = request.prompt
    answer = Answer()
    for response in mlx_lm.stream_generate(model, tokenizer, prompt, max_tokens=request.max_tokens or 256):
        answer.text += response.text
        answer.generated = response.generation_tokens
        answer.finish_reason = response.finish_reason
        if response.finish_reason != "stop" and len(answer.token_ids) < response.generation_tokens:
            answer.token_ids.append(response.token)
    return answer


def chat(text: str, **fields: Any) -> Chat:
    return Chat(messages=[Message(role="user", content=text)], **fields)


def watch_chunks(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> list[SliceShape]:
    """Return a list that receives the shape of every slice that the runner's model processes from now on."""
    pair = [Generate(prompt=[5, 6, 7][:length], max_tokens=1, cache="off") for length in (2, 3)]
    ask(runner, *pair)  # before the first prompts that are processed together, the runner tries the model
    shapes: list[SliceShape] = []
    kind = type(runner.network)
    plain = kind.__call__

    def watch(self: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        if inputs.shape[1] > 1:
            shapes.append(inputs.shape)
        return plain(self, inputs, *args, **options)

    monkeypatch.setattr(kind, "__call__", watch)
    return shapes
