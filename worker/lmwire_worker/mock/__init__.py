"""A lane without a model: it proves the contract of `lane.py` and carries tests and benchmarks of all around it.

`load {"path": "mock"}` loads it. It answers with the words of the prompt, one token each, again and again up to
max_tokens, or once without. A token's id is its place among the prompt's words. Settings follow the name, as in
`mock:load_steps=1000,step_ms=1`: each of a load's steps, and each step of the lane, takes step_ms.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from lmwire_protocol import Chat, Generate, Load, RequestError

from ..lane import Memory, Model, Outcome, Piece, Prefilled, Report

_CONTEXT_LEN = 1 << 20
_ROWS = 64
_PREFILL_TOKENS = 512
_SETTINGS = {"load_steps": 1, "step_ms": 0}


@dataclass(slots=True)
class _Row:
    words: list[str]
    left: int
    finish_reason: str
    prefilled: int = 0
    position: int = 0


class MockEngine:
    """Opens mock lanes."""

    names = ["mock"]

    def prepare(self) -> None:
        """Has nothing to import."""

    def open(self, request: Load, report: Report, replace: Callable[[], None]) -> "MockLane":
        """Loads nothing, in as many steps as asked for."""
        name, _, text = request.path.partition(":")
        if name != "mock":
            raise RequestError(
                "model_not_found", f"{request.path!r}: the mock engine has one model, `mock`", field="path"
            )
        settings = dict(_SETTINGS)
        for setting in filter(None, text.split(",")):
            key, _, value = setting.partition("=")
            if key not in settings or not value.isdigit():
                known = ", ".join(f"{key}=N" for key in settings)
                raise RequestError(
                    "model_not_found", f"{setting!r} is no setting of `mock`; there are {known}", field="path"
                )
            settings[key] = int(value)
        replace()
        for step in range(settings["load_steps"]):
            report("read", step, settings["load_steps"], "steps")
            time.sleep(settings["step_ms"] / 1000)
        return MockLane(request.path, settings["step_ms"] / 1000)


class MockLane:
    """Echoes.

    Args:
        path: what it was loaded as.
        step_seconds: how long a step takes.
    """

    rows = _ROWS

    def __init__(self, path: str, step_seconds: float) -> None:
        self.model = Model(
            path=path,
            model_type="mock",
            vocab_size=_CONTEXT_LEN,
            layers=0,
            hidden_size=0,
            context_len=_CONTEXT_LEN,
            weights_bytes=0,
            capabilities=["generate", "chat"],
        )
        self._step_seconds = step_seconds
        self._held: dict[int, _Row] = {}

    def add(self, key: int, request: Generate | Chat, seed: int) -> int:
        """Takes the words of the prompt, or of the last message."""
        words = _words(request)
        room = _CONTEXT_LEN - len(words)
        if room <= 0:
            raise RequestError("context_overflow", f"the prompt has {len(words)} tokens, the context {_CONTEXT_LEN}")
        wanted = len(words) if request.max_tokens is None else request.max_tokens
        self._held[key] = _Row(words, min(wanted, room), "stop" if request.max_tokens is None else "length")
        return len(words)

    def step(self) -> list[Outcome]:
        """A word for each request, or a slice of its prompt."""
        if self._step_seconds:
            time.sleep(self._step_seconds)
        outcomes: list[Outcome] = []
        for key, row in list(self._held.items()):
            if row.prefilled < len(row.words):
                row.prefilled = min(row.prefilled + _PREFILL_TOKENS, len(row.words))
                outcomes.append(Prefilled(key, row.prefilled, len(row.words)))
            else:
                outcomes.append(self._decode(key, row))
        return outcomes

    def remove(self, key: int) -> Piece:
        """Forgets the request; nothing is ever held back."""
        del self._held[key]
        return Piece(key)

    def memory(self) -> Memory:
        """None is used."""
        return Memory()

    def close(self) -> int:
        """Frees nothing."""
        return 0

    def _decode(self, key: int, row: _Row) -> Piece:
        piece = Piece(key)
        if row.left > 0:
            place = row.position % len(row.words)
            piece.text, piece.token_ids, piece.generated = row.words[place], [place], 1
            row.position += 1
            row.left -= 1
        if row.left == 0:
            piece.finish_reason = row.finish_reason
            del self._held[key]
        return piece


def _words(request: Generate | Chat) -> list[str]:
    """A prompt's words, each with the space behind it; token ids stand for themselves."""
    if isinstance(request, Generate):
        if not isinstance(request.prompt, str):
            return [f"{token_id} " for token_id in request.prompt]
        text = request.prompt
    else:
        content = request.messages[-1].content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
    words = re.findall(r"\S+\s*|\s+", text)
    if not words:
        raise RequestError("invalid_request", "the prompt is empty", field="prompt")
    return words
