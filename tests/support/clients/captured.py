"""Requests of real clients, kept as files that tests/http/captured replays without the clients."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_KEPT_HEADERS: Final = ("anthropic-beta", "anthropic-version", "user-agent")
_LONGEST_TEXT: Final = 80
"""Characters that are kept of a text. Prompts and descriptions of tools are much longer."""


@dataclass
class Exchange:
    """A request of a client and what its response says: status 0 if the client did not wait for one."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    status: int = 0
    ignored: str = ""

    @property
    def json(self) -> Any:
        """The request's body."""
        return json.loads(self.body)


def capture(exchanges: Sequence[Exchange], folder: Path) -> None:
    """Add to a file the answered requests that differ in their fields from those in it.

    The file has the name of the running test's module.

    Args:
        exchanges: The requests of a client.
        folder: Folder of the files.
    """
    module = Path(os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]).stem
    file = folder / f"{module.removeprefix('test_')}.json"
    kept: list[Any] = json.loads(file.read_text()) if file.exists() else []
    shapes = [_shape(each) for each in kept]
    for exchange in exchanges:
        request = _trimmed_request(exchange)
        if exchange.status == 200 and exchange.body and _shape(request) not in shapes and _stands_alone(request):
            kept.append(request)
            shapes.append(_shape(request))
    if kept:
        file.write_text("[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in kept) + "\n]\n")


def _trimmed_request(exchange: Exchange) -> dict[str, Any]:
    headers = {name: exchange.headers[name] for name in _KEPT_HEADERS if name in exchange.headers}
    body = _trimmed(exchange.json) if exchange.body else {}
    return {
        "path": exchange.path,
        "headers": headers,
        "ignored": exchange.ignored,
        "body": body | ({"model": "mock"} if "model" in body else {}),
    }


def _stands_alone(request: dict[str, Any]) -> bool:
    """Return whether a request names nothing that the server has stored from an earlier one."""
    items = request["body"].get("input", [])
    references = [item for item in items if isinstance(item, dict) and item.get("type") == "item_reference"]
    return "previous_response_id" not in request["body"] and not references


def _trimmed(value: Any) -> Any:
    """Return a value with short texts. Arguments of calls stay whole, since they are JSON."""
    match value:
        case dict():
            return {name: each if name == "arguments" else _trimmed(each) for name, each in value.items()}
        case list():
            return [_trimmed(each) for each in value]
        case str():
            return value[:_LONGEST_TEXT]
    return value


def _shape(value: Any) -> Any:
    """Return the names of a value's fields, at any depth, and the types of their values."""
    match value:
        case dict():
            return {name: value[name] if name == "path" else _shape(value[name]) for name in sorted(value)}
        case list():
            return [_shape(each) for each in value]
    return type(value).__name__
