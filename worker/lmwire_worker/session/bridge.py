"""The session for hosts of the older bridge, whose requests have no id: one at a time, answered in order.

It makes the same requests as a version 1 session, so the rest of the worker is the same for both.
The older bridge is https://github.com/dAppCore/go-mlx/blob/main/mlxlm/bridge.py.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from lmwire_protocol import Chat, Command, Info, Line, Load, Message, RequestError, decode_command
from lmwire_protocol.commands import Generation
from lmwire_protocol.events import Done, Error, ModelDone, Progress, ResultDone
from lmwire_protocol.limits import MAX_INT

from ..engine.interface import OutputEvent, TokenDelta
from ..process.stderr_log import Log
from .output_queue import OutputQueue
from .request_registry import RequestRegistry
from .request_state import Request

_MAX_TOKENS = 256
_UNLIMITED = -1
"""The value of `max_tokens` for the rest of the context."""

_Setting = Callable[[float], float]


def _clamp(low: float, high: float) -> _Setting:
    return lambda value: min(max(value, low), high)


_SETTINGS: dict[str, tuple[str, _Setting]] = {
    "max_tokens": ("max_tokens", _clamp(0, MAX_INT)),
    "temperature": ("temperature", _clamp(0, 100)),
    "top_p": ("top_p", lambda value: 1.0 if value <= 0 else min(value, 1.0)),
    "top_k": ("top_k", _clamp(0, MAX_INT)),
    "min_p": ("min_p", _clamp(0, 1)),
    "repeat_penalty": ("repetition_penalty", lambda value: 1.0 if value <= 1 else min(value, 10.0)),
}
"""For each of the bridge's settings: version 1's name, and the function that brings a value into its range."""

_WHOLE = {"max_tokens", "top_k"}

_FIELDS: dict[str, tuple[str, ...]] = {
    "load": ("path", "trust_remote_code"),
    "generate": ("prompt", *_SETTINGS),
    "chat": ("messages", *_SETTINGS),
    "info": (),
    "inspect": ("prompt",),
}
_NO_ATTENTION: Final = "no attention data captured: this worker does not copy queries and keys out of the model"
_FOREIGN_ADVICE: Final = re.compile(r"[;,] (?:or )?[^;,]*(?:`truncate`|`force`|\bchat_template\b)[^;,]*$")
"""The end of an error that recommends a field of version 1."""


class BridgeEventWriter:
    """Writes one request's events, with the fields that the bridge has always had.

    Args:
        subject: The start of its errors: the command's name.
        refusal: The error that takes the place of a description of the model, if there is one.
    """

    is_serial = True
    plain_text = True

    def __init__(self, subject: str, refusal: str = "") -> None:
        self._subject, self._refusal = subject, refusal

    def write(self, output: OutputQueue, request: Request, event: OutputEvent) -> None:
        """Queue a line for each token of a delta. The first one has the text."""
        assert isinstance(event, TokenDelta), "the bridge's commands have no other events"
        token_ids = event.token_ids if event.eos_token_id is None else [*event.token_ids, event.eos_token_id]
        for index, token_id in enumerate(token_ids):
            output.put_stream(_line({"token": "" if index else event.text, "token_id": token_id}))

    def progress(self, event: Progress) -> bytes:
        """Return nothing: the bridge has no progress events."""
        return b""

    def terminal(self, request: Request, event: Done | Error) -> bytes:
        """Return the bridge's last line for a request."""
        match event:
            case Error(code="not_loaded"):
                return self._error("no model loaded")
            case Error():
                return self._error(_FOREIGN_ADVICE.sub("", event.error))
            case ResultDone():
                return _line({"done": True, "tokens_generated": event.usage.completion_tokens})
            case ModelDone() if self._refusal:
                return self._error(self._refusal)
            case ModelDone():
                size = request.tokenizer_vocab_size
                known = {"model_type": event.model_type, "vocab_size": event.vocab_size if size is None else size}
                if isinstance(request.command, Load):
                    return _line({"ok": True, **known})
                return _line({**known, "layers": event.layers, "hidden_size": event.hidden_size})
            case _:
                return b""

    def _error(self, problem: str) -> bytes:
        return _line({"error": f"{self._subject}: {problem}"})


class BridgeSession:
    """Serves the lines of a host that gives its requests no id.

    Args:
        registry: The requests in flight.
        log: Receives what version 1 would refuse and the bridge accepts.
    """

    def __init__(self, registry: RequestRegistry, log: Log) -> None:
        self._registry = registry
        self._log = log
        self._count = 0

    def refuse(self, line: Line, error: RequestError) -> None:
        """Answer a line that does not hold an object, in its turn.

        Args:
            line: The line.
            error: The reason.
        """
        self._submit("parse error", Info(), len(line.data), error)

    def serve(self, fields: dict[str, Any], line_bytes: int) -> None:
        """Answer an object in its turn, and `cancel` at once.

        Args:
            fields: The object.
            line_bytes: Size of its line.
        """
        name = fields.get("cmd")
        subject = name if isinstance(name, str) and name in _FIELDS else "unknown command"
        if "id" in fields:
            problem = RequestError("invalid_request", "this session's requests have no id")
            self._submit(subject, Info(), line_bytes, problem)
        elif name == "cancel":
            # The older bridge read it between requests, so that it never ended a load.
            self._registry.cancel_where(lambda request: isinstance(request.command, Generation))
        elif name == "quit":
            self._registry.drain()
        elif name == "inspect":
            refusal = _NO_ATTENTION if fields.get("prompt") else _missing("prompt")
            self._submit(subject, Info(), line_bytes, writer=BridgeEventWriter(subject, refusal))
        else:
            try:
                self._submit(subject, self._translate(fields), line_bytes)
            except RequestError as error:
                self._submit(subject, Info(), line_bytes, error)

    def _submit(
        self,
        subject: str,
        command: Command,
        line_bytes: int,
        refusal: RequestError | None = None,
        writer: BridgeEventWriter | None = None,
    ) -> None:
        self._count += 1
        writer = writer or BridgeEventWriter(subject)
        request = Request(str(self._count), command, writer, line_bytes, self._registry.clock)
        request.deferred_error = refusal
        try:
            self._registry.accept(request)
        except RequestError as error:  # busy or draining: it cannot be answered in its turn
            self._log(f"refused a request: {error.message}")

    def _translate(self, fields: Mapping[str, Any]) -> Command:
        name = fields.get("cmd")
        known = _FIELDS.get(name) if isinstance(name, str) else None
        if name is None or known is None:
            unknown = str("" if name is None else name)[:200]
            raise RequestError("unknown_command", f"{unknown}; there are {', '.join(_FIELDS)}, cancel and quit")
        self._log_ignored(name, [field for field in fields if field not in ("cmd", *known)])
        if name == "load" and fields.get("path") in (None, ""):
            raise RequestError("invalid_request", _missing("path"))
        wanted = {field: fields[field] for field in known if field in fields and field not in _SETTINGS}
        if name in ("generate", "chat"):
            wanted |= self._settings(fields)
        if name == "generate":
            wanted.setdefault("prompt", "")
        if name != "chat":
            return decode_command({"cmd": name, **wanted})
        chat, ignored = read_chat(wanted.pop("messages", []), wanted)
        self._log_ignored(name, ignored)
        return chat

    def _log_ignored(self, name: str, ignored: list[str]) -> None:
        if ignored:
            self._log(f"{name}: ignored {', '.join(map(repr, ignored))[:500]}")

    def _settings(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a request by version 1's names."""
        given = {_SETTINGS[name][0]: self._setting(name, fields[name]) for name in _SETTINGS if name in fields}
        given.setdefault("max_tokens", _MAX_TOKENS)
        if fields.get("max_tokens") == _UNLIMITED:
            del given["max_tokens"]
        return given

    def _setting(self, field: str, value: Any) -> Any:
        """Return a setting's value within its range, as a whole number if it must be one."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value  # the decoder refuses it
        if field == "max_tokens" and value == _UNLIMITED:
            return value
        clamped = _SETTINGS[field][1](value)
        if field in _WHOLE:
            clamped = int(clamped)
        if clamped != value and not (field in ("top_p", "repeat_penalty") and value <= 1):
            self._log(f"{field}: {value} is out of range, {clamped} is used")
        return clamped


def _missing(field: str) -> str:
    return f"missing '{field}'"


def _line(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


# What a bridge session says of a conversation.

_MESSAGE_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "system": (),
    "developer": (),
    "user": (),
    "assistant": ("reasoning", "tool_calls"),
    "tool": ("tool_call_id",),
}
"""For each role of version 1, the fields that only its messages have."""
_COMMON: Final = ("role", "content", "name")
_PART_FIELDS: Final = ("type", "text", "media")
_NO_CALL: Final = "call_0"
"""Id of the call that a tool's message answers if it names none."""


def read_chat(messages: object, settings: dict[str, Any]) -> tuple[Chat, list[str]]:
    """Return a bridge's `chat`, and the paths of the keys that it ignores.

    Args:
        messages: The request's messages.
        settings: Its settings, by version 1's names.

    Raises:
        RequestError: invalid_request: a value is of a wrong type.
    """
    if not isinstance(messages, list):
        raise RequestError("invalid_request", "messages: must be a list of messages", field="messages")
    ignored: list[str] = []
    read = [_read_message(message, f"messages[{index}]", ignored) for index, message in enumerate(messages)]
    stand_ins = [{**message, "role": _known_role(message["role"])} for message in read]
    # Version 1 demands a message, and one of its own roles: the types of everything else are checked with these.
    fields = {"cmd": "chat", "messages": stand_ins or [{"role": "user", "content": ""}], **settings}
    chat = cast(Chat, decode_command(fields))
    own_roles = [_with_role(message, given["role"]) for message, given in zip(chat.messages, read, strict=False)]
    return msgspec.structs.replace(chat, messages=own_roles), ignored


def _read_message(message: object, path: str, ignored: list[str]) -> dict[str, Any]:
    """Return a message with the fields that version 1 has for its role."""
    if not isinstance(message, dict):
        raise RequestError("invalid_request", f"{path}: must be an object with role and content", field=path)
    role = message.get("role", "user")
    if not isinstance(role, str):
        raise RequestError("invalid_request", f"{path}.role: must be a string", field=f"{path}.role")
    fields = _only(message, (*_COMMON, *_MESSAGE_FIELDS.get(role, ())), path, ignored)
    content = fields.get("content", "")
    if isinstance(content, list):
        content = [
            _only(part, _PART_FIELDS, f"{path}.content[{index}]", ignored) if isinstance(part, dict) else part
            for index, part in enumerate(content)
        ]
    if role == "tool":
        fields.setdefault("tool_call_id", _NO_CALL)
    return {**fields, "role": role, "content": content}


def _only(fields: dict[str, Any], known: Iterable[str], path: str, ignored: list[str]) -> dict[str, Any]:
    ignored += [f"{path}.{name}" for name in fields if name not in known]
    return {name: fields[name] for name in known if name in fields}


def _known_role(role: str) -> str:
    return role if role in _MESSAGE_FIELDS else "user"


def _with_role(message: Message, role: str) -> Message:
    return message if message.role == role else msgspec.structs.replace(message, role=cast(Any, role))
