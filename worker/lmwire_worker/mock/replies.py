"""The replies of a scenario, as Structs. MOCK.md explains them."""

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
    """Time that the token takes, in milliseconds; the reply's `token_ms` if absent."""


class Call(Struct, forbid_unknown_fields=True, frozen=True):
    """One tool call of an answer."""

    name: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any] | str = {}
    """An object, or the JSON text that the model writes. Text that does not hold an object makes an invalid call."""
    id: str | None = None

    @property
    def json(self) -> str:
        """Return the arguments as JSON text."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()

    @property
    def is_whole(self) -> bool:
        """Return whether the call is valid."""
        try:
            return isinstance(msgspec.json.decode(self.json), dict)
        except msgspec.DecodeError:
            return False


class Stage(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One progress event of a load, a prefill or a transcription."""

    stage: events.Stage
    current: Count
    total: Count | None = None
    unit: events.Unit
    delay_ms: Milliseconds = 0
    """Time until the next event, in milliseconds."""


class Failure(Struct, forbid_unknown_fields=True, frozen=True):
    """An error that ends the request."""

    code: str
    message: str = "the scenario says so"
    retryable: bool | None = None
    """The error's `retryable`; the code's default if absent."""
    field: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"code: {self.code!r} is not one of {', '.join(CODES)}")

    def to_error(self) -> RequestError:
        """Return the error to raise."""
        return RequestError(self.code, self.message, field=self.field, retryable=self.retryable)


class Answer(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The model's answer, in the order of the fields."""

    reasoning: str | None = None
    """The reasoning, a token for each word. In a `generate` it is content."""
    text: str | None = None
    """The content, a token for each word."""
    tokens: list[Token | str] | None = None
    """The content, token by token."""
    tool_calls: list[Call] = []
    finish_reason: Literal["stop", "length", "capacity"] = "stop"
    """The finish reason. `stop` becomes `tool_calls` after a valid tool call."""

    def __post_init__(self) -> None:
        if self.text is not None and self.tokens is not None:
            raise ValueError("tokens: give `text` or `tokens`, not both")

    @property
    def echoes(self) -> bool:
        """Return whether the answer repeats the prompt."""
        return self.text is None and self.tokens is None and not self.tool_calls

    def content(self, echo: Sequence[str]) -> list[Token]:
        """Return the tokens of the content.

        Args:
            echo: The prompt's words.
        """
        if self.tokens is not None:
            return [Token(token) if isinstance(token, str) else token for token in self.tokens]
        return [Token(word) for word in (echo if self.echoes else words(self.text or ""))]


class Reply(Answer, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The reply to a request. It echoes without `text`, `tokens`, `tool_calls`, `choices` and `error`."""

    delay_ms: Milliseconds = 0
    """Delay before the first event, in milliseconds."""
    progress: list[Stage] = []
    """Progress events before the answer."""
    choices: list[Answer] = []
    """Several answers instead of one. The choices use them in turn."""
    vectors: list[Annotated[list[float], Meta(min_length=1)]] = []
    """Vectors for an `embed`. The inputs use them in turn."""
    token_ms: Milliseconds = 0
    """Time for each token, or each word of an input or a transcript, in milliseconds."""
    error: Failure | None = None
    """Error that ends the request, instead of a `done`."""
    then: Literal["end", "repeat", "wait", "hang"] = "end"
    """After the last token: end, repeat, wait for a cancel, or hang without reacting to anything."""

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
        """Return whether the reply has an answer besides `choices`."""
        return not self.echoes or self.reasoning is not None or self.finish_reason != "stop"

    @property
    def has_no_end(self) -> bool:
        """Return whether an error, a wait or a hang follows the last token."""
        return bool(self.error) or self.then in ("wait", "hang")

    @property
    def fails_at_once(self) -> bool:
        """Return whether the request fails before any other event."""
        return bool(self.error) and not (self.has_answer or self.choices or self.progress)

    def answers(self, count: int) -> list[Answer]:
        """Return the answers for a number of choices."""
        choices = self.choices or [Answer(text="", reasoning=self.reasoning) if self.error and self.echoes else self]
        return [choices[index % len(choices)] for index in range(count)]
