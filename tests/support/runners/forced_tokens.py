"""Answers whose format forces most of their tokens, and the same answers step by step."""

import pytest

from lmwire_protocol import Chat, Generate, JsonSchemaFormat
from lmwire_worker.generation.request_table import Sequence
from lmwire_worker.generation.runner import GenerationRunner

from .generation_runners import Answer, ask

TRIP = JsonSchemaFormat(
    {
        "type": "object",
        "properties": {"city": {"enum": ["Rome", "Paris"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
)


def step_by_step(runner: GenerationRunner, *requests: Generate | Chat) -> list[Answer]:
    """Return the answers of requests, one after the other, without forced tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sequence, "forced_tokens", lambda *_: [])
        return [ask(runner, request)[0] for request in requests]
