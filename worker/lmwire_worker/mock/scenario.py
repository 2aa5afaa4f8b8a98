"""Which request gets which reply: the scenario file, as Structs that say what may stand in it. MOCK.md explains it."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from lmwire_protocol import CODES, Chat, Generate, Load, RequestError

Served = Load | Generate | Chat
"""The commands that a rule can reply to. The worker itself answers the others."""

Milliseconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]

_COMMANDS: Final[tuple[type[Served], ...]] = (Load, Generate, Chat)
_PATTERNS: Final = {"path": Load, "prompt": Generate, "last_message": Chat}


class Token(Struct, forbid_unknown_fields=True, frozen=True):
    """One token of an answer."""

    text: str
    delay_ms: Milliseconds | None = None
    """How long it takes; the reply's `token_ms` when absent."""


class Stage(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One point that a load, or the processing of a prompt, comes to."""

    stage: Literal["resolve", "download", "read", "warm_up", "prefill"]
    current: Count
    total: Count | None = None
    unit: Literal["bytes", "tokens", "steps", "seconds"]
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


class Reply(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What happens to a request, in the order of the fields. It echoes without `text`, `tokens` and `error`."""

    delay_ms: Milliseconds = 0
    """How long nothing happens."""
    progress: list[Stage] = []
    text: str | None = None
    """The answer, a token for each word."""
    tokens: list[Token | str] | None = None
    """The answer, token by token."""
    token_ms: Milliseconds = 0
    """How long each token takes."""
    error: Failure | None = None
    """How it ends, in place of a `done`."""
    then: Literal["end", "repeat", "wait", "hang"] = "end"
    """Behind the last token: end; begin again; wait for a cancel; hang, as an engine that nothing can interrupt."""
    finish_reason: Literal["stop", "length"] = "stop"

    def __post_init__(self) -> None:
        if self.text is not None and self.tokens is not None:
            raise ValueError("tokens: give `text` or `tokens`, not both")
        if self.error and self.then != "end":
            raise ValueError(f"then: a reply with `error` ends, so it cannot {self.then}")

    @property
    def echoes(self) -> bool:
        """Whether the answer is the prompt."""
        return self.text is None and self.tokens is None and self.error is None

    @property
    def refuses(self) -> bool:
        """Whether it fails before anything has happened."""
        return self.text is None and self.tokens is None and self.error is not None and not self.progress

    def pieces(self, echo: Sequence[str]) -> Sequence[tuple[str, float]]:
        """The answer's tokens, each with the seconds it takes.

        Args:
            echo: the prompt's words.
        """
        usual = self.token_ms / 1000
        if self.tokens is None:
            return [(word, usual) for word in (echo if self.echoes else words(self.text or ""))]
        tokens = [Token(token) if isinstance(token, str) else token for token in self.tokens]
        return [(token.text, usual if token.delay_ms is None else token.delay_ms / 1000) for token in tokens]


class Match(Struct, forbid_unknown_fields=True, frozen=True):
    """Which requests a rule is for. All that is given must hold; nothing given is every `generate` and `chat`."""

    cmd: Literal["load", "generate", "chat"] | None = None
    path: str | None = None
    """A regular expression, found anywhere in a load's path."""
    prompt: str | None = None
    """The same in a generate's prompt."""
    last_message: str | None = None
    """The same in the text of a chat's last message."""
    fields: dict[str, Any] = {}
    """Other fields of the request, and the values they must have."""

    def __post_init__(self) -> None:
        for name in _PATTERNS:
            try:
                re.compile(getattr(self, name) or "")
            except re.error as error:
                raise ValueError(f"{name}: is no regular expression: {error}") from None
        if not (commands := self.commands()):
            raise ValueError("match: no command has all of these fields")
        for name in self.fields:
            if not any(name in command.__struct_fields__ for command in commands):
                raise ValueError(f"fields.{name}: {' and '.join(c.name for c in commands)} have no such field")

    def commands(self) -> list[type[Served]]:
        """The commands that it can be true of."""
        given = [command for name, command in _PATTERNS.items() if getattr(self, name) is not None]
        usual = [Generate, Chat] if self.cmd is None and not given else list(_COMMANDS)
        return [
            command
            for command in usual
            if self.cmd in (None, command.name) and all(other is command for other in given)
        ]

    def holds(self, request: Served) -> bool:
        """Whether it is true of the request."""
        if type(request) not in self.commands():
            return False
        pattern = self.path or self.prompt or self.last_message
        if pattern is not None and not re.search(pattern, said(request)):
            return False
        given = msgspec.to_builtins(request) if self.fields else {}
        return all(given.get(name, getattr(request, name, None)) == value for name, value in self.fields.items())


class Rule(Struct, forbid_unknown_fields=True, frozen=True):
    """A reply, and what it is the reply to."""

    reply: Reply
    match: Match = Match()
    times: Annotated[int, Meta(ge=1)] | None = None
    """How often it is used; any number of times when absent."""

    def __post_init__(self) -> None:
        loads, reply = Load in self.match.commands(), self.reply
        own_tokens = reply.text is not None or reply.tokens is not None
        if loads and (own_tokens or reply.token_ms or reply.then == "repeat"):
            raise ValueError("reply: a load has no tokens")
        for index, stage in enumerate(reply.progress):
            if loads == (stage.stage == "prefill"):
                of = "a load" if loads else "generate and chat"
                raise ValueError(f"reply.progress[{index}].stage: {stage.stage!r} is no stage of {of}")
            if not loads and stage.unit != "tokens":
                raise ValueError(f"reply.progress[{index}].unit: a prompt is counted in tokens")


class Scenario(Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    rules: list[Rule]


class Script:
    """Rules at work: the first that matches, and is not used up, replies.

    Args:
        rules: in their order.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = rules
        self._left = [rule.times for rule in rules]

    def reply_to(self, request: Served) -> Reply | None:
        """What to do with a request; None when no rule is for it."""
        for index, rule in enumerate(self._rules):
            left = self._left[index]
            if left != 0 and rule.match.holds(request):
                self._left[index] = None if left is None else left - 1
                return rule.reply
        return None


def read_rules(path: str) -> list[Rule]:
    """The rules of a scenario file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no scenario; the sentence names the place.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        return msgspec.json.decode(data, type=Scenario).rules
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None


def said(request: Served) -> str:
    """A load's path, a prompt, or the text of the last message."""
    if isinstance(request, Load):
        return request.path
    if isinstance(request, Generate):
        return request.prompt if isinstance(request.prompt, str) else "".join(f"{id} " for id in request.prompt)
    content = request.messages[-1].content
    return content if isinstance(content, str) else "".join(part.text for part in content)


def words(text: str) -> list[str]:
    """A text's words, each with the space behind it."""
    return re.findall(r"\S+\s*|\s+", text)
