"""Drives text lanes as the scheduler does, and asks mlx-lm for what they should give."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import mlx_lm

from lmwire_protocol import Chat, Generate, Load, RequestError
from lmwire_protocol.commands import Message
from lmwire_worker.lane import Failed, Piece, Prefilled
from lmwire_worker.text import TextEngine
from lmwire_worker.text.lane import TextLane

FAMILIES = ("llama", "qwen3", "gemma3_text", "mamba", "qwen3_next")


@dataclass
class Answer:
    """What a request gave, all in all."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    generated: int = 0
    finish_reason: str | None = None
    stop: str | None = None
    error: RequestError | None = None
    prefilled: list[tuple[int, int]] = field(default_factory=list)


class Driver:
    """A lane with requests in it."""

    def __init__(self, lane: TextLane) -> None:
        self.lane = lane
        self.answers: dict[int, Answer] = {}
        self.running: set[int] = set()

    def add(self, key: int, request: Generate | Chat, seed: int = 0) -> None:
        self.lane.add(key, request, seed)
        self.answers[key] = Answer()
        self.running.add(key)

    def remove(self, key: int) -> Answer:
        self.running.remove(key)
        self.answers[key].text += self.lane.remove(key).text
        return self.answers[key]

    def step(self) -> None:
        for outcome in self.lane.step():
            answer = self.answers[outcome.key]
            assert outcome.key in self.running, "an outcome after the end"
            if isinstance(outcome, Prefilled):
                answer.prefilled.append((outcome.done, outcome.total))
            elif isinstance(outcome, Failed):
                answer.error = outcome.error
                self.running.remove(outcome.key)
            elif isinstance(outcome, Piece):
                answer.text += outcome.text
                answer.token_ids += outcome.token_ids
                answer.generated += outcome.generated
                answer.finish_reason, answer.stop = outcome.finish_reason, outcome.stop
                if outcome.finish_reason is not None:
                    self.running.remove(outcome.key)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def finish(self) -> dict[int, Answer]:
        while self.running:
            self.step()
        return self.answers


def ask(lane: TextLane, *requests: Generate | Chat, seeds: Sequence[int] = ()) -> list[Answer]:
    """The requests' answers, given together."""
    driver = Driver(lane)
    for key, request in enumerate(requests):
        driver.add(key, request, seeds[key] if seeds else 0)
    return list(driver.finish().values())


def open_lane(folder: Path, *, trust_remote_code: bool = False) -> TextLane:
    engine = TextEngine()
    engine.prepare()
    lane = engine.open(
        Load(path=str(folder), trust_remote_code=trust_remote_code), lambda *_: None, replace=lambda: None
    )
    assert isinstance(lane, TextLane)
    return lane


@cache
def stock(folder: Path, trust_remote_code: bool = False) -> tuple[Any, Any]:
    """The same model as mlx-lm itself loads it, with its tokenizer."""
    model, tokenizer, *_ = mlx_lm.load(str(folder), trust_remote_code=trust_remote_code)
    return model, tokenizer


def expected(folder: Path, request: Generate | Chat, trust_remote_code: bool = False) -> Answer:
    """What mlx-lm's single-stream generation gives, greedy."""
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
