"""The scenario file, as Structs: rules that choose a request's reply. MOCK.md explains it."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from lmwire_protocol import Chat, Embed, Generate, Load, Speak, Transcribe

from .other_commands import text_of, told
from .prompts import said
from .replies import Reply, Stage

Served = Load | Generate | Chat | Embed | Transcribe | Speak
"""Commands that a rule can reply to. The worker itself answers the others."""

_COMMANDS: Final[tuple[type[Served], ...]] = (Load, Generate, Chat, Embed, Transcribe, Speak)
_PATTERNS: Final = {
    "path": Load,
    "prompt": Generate,
    "last_message": Chat,
    "input": Embed,
    "audio": Transcribe,
    "text": Speak,
}
_LOADING: Final = ("resolve", "download", "read", "warm_up")
_STAGES: Final[dict[type[Served], str]] = {
    Load: "a load",
    Generate: "generate and chat",
    Chat: "generate and chat",
    Transcribe: "transcribe",
}


class Match(Struct, forbid_unknown_fields=True, frozen=True):
    """The conditions of a rule. All must hold. Without any, the rule matches every `generate` and `chat`."""

    cmd: Literal["load", "generate", "chat", "embed", "transcribe", "speak"] | None = None
    path: str | None = None
    """Regular expression to find in a load's path."""
    prompt: str | None = None
    """Regular expression to find in a generate's prompt."""
    last_message: str | None = None
    """Regular expression to find in the text of a chat's last message."""
    input: str | None = None
    """Regular expression to find in an embed's input. An image's text is its path, its URL, or `data`."""
    audio: str | None = None
    """Regular expression to find in the path or URL of a transcribe's recording, or in `data`."""
    text: str | None = None
    """Regular expression to find in a speak's text."""
    fields: dict[str, Any] = {}
    """Values that other fields of the request must have."""
    has: list[str] = []
    """Other fields that must differ from their default."""

    def __post_init__(self) -> None:
        for name in _PATTERNS:
            try:
                re.compile(getattr(self, name) or "")
            except re.error as error:
                raise ValueError(f"{name}: is not a regular expression: {error}") from None
        if not self.commands():
            raise ValueError("match: no command has all of these fields")
        for where, name in [*(("fields.", name) for name in self.fields), *(("has: ", name) for name in self.has)]:
            if not any(name in command.__struct_fields__ for command in self.commands()):
                commands = " and ".join(command.name for command in self.commands())
                raise ValueError(f"{where}{name}: {commands} have no such field")

    def commands(self) -> list[type[Served]]:
        """Return the commands that the conditions can match."""
        given = [command for name, command in _PATTERNS.items() if getattr(self, name) is not None]
        usual = [Generate, Chat] if self.cmd is None and not given else list(_COMMANDS)
        return [
            command
            for command in usual
            if self.cmd in (None, command.name) and all(other is command for other in given)
        ]

    @property
    def named(self) -> set[str]:
        """Return the fields in the conditions, besides the patterns."""
        return {*self.fields, *self.has}

    def holds(self, request: Served) -> bool:
        """Return whether the conditions hold for a request."""
        if type(request) not in self.commands():
            return False
        pattern = next(filter(None, (getattr(self, name) for name in _PATTERNS)), None)
        if pattern is not None and not any(re.search(pattern, text) for text in _texts(request)):
            return False
        given = msgspec.to_builtins(request) if self.named else {}
        return all(name in given for name in self.has) and all(
            given.get(name, getattr(request, name, None)) == value for name, value in self.fields.items()
        )


def _texts(request: Served) -> list[str]:
    if isinstance(request, Embed):
        return [text_of(part) for part in request.input]
    if isinstance(request, Speak):
        return [request.text]
    return [told(request.audio) if isinstance(request, Transcribe) else said(request)]


class Rule(Struct, forbid_unknown_fields=True, frozen=True):
    """A reply, and the conditions for it."""

    reply: Reply
    match: Match = Match()
    times: Annotated[int, Meta(ge=1)] | None = None
    """Number of requests that the rule replies to; no limit if absent."""

    def __post_init__(self) -> None:
        commands, reply = self.match.commands(), self.reply
        if Load in commands and (reply.has_answer or reply.choices or reply.token_ms or reply.then == "repeat"):
            raise ValueError("reply: a load has no tokens")
        if reply.vectors and commands != [Embed]:
            raise ValueError("reply.vectors: only embed has vectors")
        if Embed in commands and (reply.has_answer or reply.choices or reply.progress or reply.then == "repeat"):
            raise ValueError("reply: an embed has vectors, and no text or progress")
        if Transcribe in commands and (reply.choices or reply.then == "repeat" or _says_more(reply)):
            raise ValueError("reply: a transcribe has `text`, and nothing else to say")
        if Speak in commands and (reply.choices or reply.progress or reply.then == "repeat" or _says_more(reply)):
            raise ValueError("reply: a speak has `text`, and no progress")
        for index, stage in enumerate(reply.progress):
            self._check_stage(f"reply.progress[{index}]", stage, commands)

    def _check_stage(self, place: str, stage: Stage, commands: Sequence[type[Served]]) -> None:
        for command in commands:
            if (command is Load) != (stage.stage in _LOADING) or (command is Transcribe) != (
                stage.stage == "transcribe"
            ):
                raise ValueError(f"{place}.stage: {stage.stage!r} is not a stage of {_STAGES[command]}")
        if stage.stage == "prefill" and stage.unit != "tokens":
            raise ValueError(f"{place}.unit: a prompt is counted in tokens")
        if stage.stage == "transcribe" and stage.unit != "seconds":
            raise ValueError(f"{place}.unit: a recording is counted in seconds")


def _says_more(reply: Reply) -> bool:
    return bool(reply.tokens or reply.tool_calls or reply.reasoning) or reply.finish_reason != "stop"


class Scenario(Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    rules: list[Rule]


class Script:
    """Rules in use: the first that matches and is not used up replies.

    Args:
        rules: The rules, in order.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = rules
        self._remaining = [rule.times for rule in rules]

    def rule_for(self, request: Served) -> Rule | None:
        """Return the rule for a request, and count its use; None if no rule matches."""
        for index, rule in enumerate(self._rules):
            left = self._remaining[index]
            if left != 0 and rule.match.holds(request):
                self._remaining[index] = None if left is None else left - 1
                return rule
        return None

    def vouched(self) -> set[str]:
        """Return the fields that rules match on, in the form `command.field`."""
        return {
            f"{command.name}.{name}"
            for rule in self._rules
            for command in rule.match.commands()
            for name in rule.match.named
        }


def read_rules(path: str) -> list[Rule]:
    """Return the rules of a scenario file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a valid scenario; the message names the place.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        return msgspec.json.decode(data, type=Scenario).rules
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
