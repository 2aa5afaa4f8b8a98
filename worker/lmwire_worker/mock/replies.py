"""What can happen to a request: the half of a scenario's Structs that says what is answered. MOCK.md explains it."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from lmwire_protocol import CODES, RequestError, events

from .prompts import words

Milliseconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Token(Struct, forbid_unknown_fields=True, frozen=True):
    """One token of an answer."""

    text: str
    delay_ms: Milliseconds | None = None
    """How long it takes; the reply's `token_ms` when absent."""


class Call(Struct, forbid_unknown_fields=True, frozen=True):
    """One tool call of an answer."""

    name: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any] | str = {}
    """An object, or its JSON text as the model writes it. Text that is no object makes a call that fails."""
    id: str | None = None

    @property
    def json(self) -> str:
        """The arguments as they are written."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()

    @property
    def is_whole(self) -> bool:
        """Whether it is a call."""
        try:
            return isinstance(msgspec.json.decode(self.json), dict)
        except msgspec.DecodeError:
            return False


class Stage(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One point that a load, or the processing of a prompt or a recording, comes to."""

    stage: events.Stage
    current: Count
    total: Count | None = None
    unit: events.Unit
    delay_ms: Milliseconds = 0
    """How long it stays there."""


class Failure(Struct, forbid_unknown_fields=True, frozen=True):
    """An error that ends the request."""

    code: str
    message: str = "the scenario says so"
    retryable: bool | None = None
    """The code's usual value when absent."""
    field: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"code: {self.code!r} is not one of {', '.join(CODES)}")

    def to_error(self) -> RequestError:
        """The error to raise."""
        return RequestError(self.code, self.message, field=self.field, retryable=self.retryable)


class Answer(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the model says, in the order of the fields."""

    reasoning: str | None = None
    """What it thinks first, a token for each word; a `generate` has no thoughts, so it is content there."""
    text: str | None = None
    """The answer, a token for each word."""
    tokens: list[Token | str] | None = None
    """The answer, token by token."""
    tool_calls: list[Call] = []
    finish_reason: Literal["stop", "length", "capacity"] = "stop"
    """An answer that stops with whole tool calls is told as `tool_calls`."""

    def __post_init__(self) -> None:
        if self.text is not None and self.tokens is not None:
            raise ValueError("tokens: give `text` or `tokens`, not both")

    @property
    def echoes(self) -> bool:
        """Whether the answer is the prompt."""
        return self.text is None and self.tokens is None and not self.tool_calls

    def content(self, echo: Sequence[str]) -> list[Token]:
        """The answer's tokens, without the thought and the calls.

        Args:
            echo: the prompt's words.
        """
        if self.tokens is not None:
            return [Token(token) if isinstance(token, str) else token for token in self.tokens]
        return [Token(word) for word in (echo if self.echoes else words(self.text or ""))]


class Reply(Answer, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What happens to a request. It echoes without `text`, `tokens`, `tool_calls`, `choices` and `error`."""

    delay_ms: Milliseconds = 0
    """How long nothing happens at first."""
    progress: list[Stage] = []
    """What happens then, before the answer."""
    choices: list[Answer] = []
    """Several answers, in place of one: for each choice the next, and then the first again."""
    vectors: list[Annotated[list[float], Meta(min_length=1)]] = []
    """The answer to an `embed`: for each input the next, and then the first again."""
    token_ms: Milliseconds = 0
    """How long each token takes, and each word of a text to embed or of a transcript."""
    error: Failure | None = None
    """How it ends, in place of a `done`."""
    then: Literal["end", "repeat", "wait", "hang"] = "end"
    """Behind the last token: end; begin again; wait for a cancel; hang, as an engine that nothing can interrupt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.error and self.then != "end":
            raise ValueError(f"then: a reply with `error` ends, so it cannot {self.then}")
        if self.choices and self.has_answer:
            raise ValueError("choices: give one answer or `choices`, not both")
        if self.then == "repeat" and any(answer.tool_calls for answer in (self, *self.choices)):
            raise ValueError("then: a reply with tool calls cannot repeat")

    @property
    def has_answer(self) -> bool:
        """Whether an answer is given beside `choices`."""
        return not self.echoes or self.reasoning is not None or self.finish_reason != "stop"

    @property
    def has_no_end(self) -> bool:
        """Whether something else comes behind the last token."""
        return bool(self.error) or self.then in ("wait", "hang")

    @property
    def fails_at_once(self) -> bool:
        """Whether it fails before anything has happened."""
        return bool(self.error) and not (self.has_answer or self.choices or self.progress)

    def answers(self, count: int) -> list[Answer]:
        """The answers to a request for so many choices."""
        choices = self.choices or [Answer(text="", reasoning=self.reasoning) if self.error and self.echoes else self]
        return [choices[index % len(choices)] for index in range(count)]
