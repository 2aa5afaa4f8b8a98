"""The session for hosts of the older bridge, whose requests have no id: one at a time, answered in order.

It makes the same requests as a version 1 session, so the rest of the worker is the same for both.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lmwire_protocol import Command, Info, Line, Load, RequestError, decode_command
from lmwire_protocol.events import Done, Error, ModelDone, Progress, ResultDone
from lmwire_protocol.limits import MAX_INT

from ..engine.interface import TokenDelta
from ..process.stderr_log import Log
from .event_writer import OutputEvent
from .output_queue import OutputQueue
from .request_registry import RequestRegistry
from .request_state import Request

_MAX_TOKENS = 256

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
}


class BridgeEventWriter:
    """Writes a line for each token, with the fields that the bridge has always had."""

    is_serial = True
    plain_text = True

    def __init__(self) -> None:
        self._token_id = 0

    def write(self, output: OutputQueue, request: Request, event: OutputEvent) -> None:
        """Queue a line for the tokens of a delta."""
        assert isinstance(event, TokenDelta), "the bridge's commands have no other events"
        if event.text or event.token_ids:
            # Text that becomes certain only at the end has no token; it carries the last token's id.
            self._token_id = event.token_ids[-1] if event.token_ids else self._token_id
            output.put_stream(_line({"token": event.text, "token_id": self._token_id}))

    def progress(self, event: Progress) -> bytes:
        """Return nothing: the bridge has no progress events."""
        return b""

    def terminal(self, request: Request, event: Done | Error) -> bytes:
        """Return the bridge's last line for a request."""
        match event:
            case Error():
                return _line({"error": event.error})
            case ResultDone():
                return _line({"done": True, "tokens_generated": event.usage.completion_tokens})
            case ModelDone() if isinstance(request.command, Load):
                return _line({"ok": True, "model_type": event.model_type, "vocab_size": event.vocab_size})
            case ModelDone():
                names = ("model_type", "vocab_size", "layers", "hidden_size")
                return _line({name: getattr(event, name) for name in names})
            case _:
                return b""


class BridgeSession:
    """Serves the lines of a host that gives its requests no id.

    Args:
        registry: The requests in flight.
        log: Receives what version 1 would refuse and the bridge accepts.
    """

    def __init__(self, registry: RequestRegistry, log: Log) -> None:
        self._registry = registry
        self._log = log
        self._writer = BridgeEventWriter()
        self._count = 0

    def refuse(self, line: Line, error: RequestError) -> None:
        """Answer a line that does not hold an object, in its turn.

        Args:
            line: The line.
            error: The reason.
        """
        self._submit(Info(), len(line.data), error)

    def serve(self, fields: dict[str, Any], line_bytes: int) -> None:
        """Answer an object in its turn, and `cancel` at once.

        Args:
            fields: The object.
            line_bytes: Size of its line.
        """
        name = fields.get("cmd")
        if "id" in fields:
            self._submit(Info(), line_bytes, RequestError("invalid_request", "this session's requests have no id"))
        elif name == "cancel":
            self._registry.cancel_where(lambda request: True)
        elif name == "quit":
            self._registry.drain()
        else:
            try:
                self._submit(self._translate(fields), line_bytes)
            except RequestError as error:
                self._submit(Info(), line_bytes, error)

    def _submit(self, command: Command, line_bytes: int, refusal: RequestError | None = None) -> None:
        self._count += 1
        request = Request(str(self._count), command, self._writer, line_bytes, time.monotonic())
        request.deferred_error = refusal
        try:
            self._registry.accept(request)
        except RequestError as error:  # busy or draining: it cannot be answered in its turn
            self._log(f"refused a request: {error.message}")

    def _translate(self, fields: Mapping[str, Any]) -> Command:
        name = fields.get("cmd")
        known = _FIELDS.get(name) if isinstance(name, str) else None
        if known is None:
            raise RequestError(
                "unknown_command", f"unknown command {name!r}; there are {', '.join(_FIELDS)}, cancel and quit"
            )
        ignored = [field for field in fields if field not in ("cmd", *known)]
        if ignored:
            self._log(f"{name}: ignored {', '.join(map(repr, ignored))[:500]}")
        wanted = {field: fields[field] for field in known if field in fields and field not in _SETTINGS}
        settings = {
            _SETTINGS[field][0]: self._setting(field, fields[field])
            for field in known
            if field in _SETTINGS and field in fields
        }
        if name in ("generate", "chat"):
            settings.setdefault("max_tokens", _MAX_TOKENS)
        return decode_command({"cmd": name, **wanted, **settings})

    def _setting(self, field: str, value: Any) -> Any:
        """Return a setting's value within its range, as a whole number if it must be one."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value  # the decoder refuses it
        clamped = _SETTINGS[field][1](value)
        if field in _WHOLE:
            clamped = int(clamped)
        if clamped != value and not (field in ("top_p", "repeat_penalty") and value <= 1):
            self._log(f"{field}: {value} is out of range, {clamped} is used")
        return clamped


def _line(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields) + b"\n"
