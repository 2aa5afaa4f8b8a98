"""The single messages of protocol/vectors, expanded to the bytes that they stand for. README.md there is the format."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmwire_protocol.json_value import JsonValue

FREE_FORM = {"arguments", "parameters", "schema", "template_args"}


@dataclass(frozen=True)
class Vector:
    """One message: `line`, without its newline, and the `entry` that describes it."""

    name: str
    line: bytes
    entry: dict[str, Any]

    @property
    def object(self) -> Any:
        """The line as a JSON value, with null members dropped."""
        return without_nulls(json.loads(self.line))


def folder() -> Path:
    """Return the folder of the vectors: within the installed package, or beside it in a checkout."""
    installed = Path(__file__).with_name("vectors")
    return installed if installed.is_dir() else Path(__file__).parents[1] / "vectors"


def read(name: str) -> list[Vector]:
    """Return the vectors in one file, such as `commands.valid`."""
    lines = (folder() / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    entries = [json.loads(line) for line in lines if line]
    return [Vector(entry["name"], _expand(entry["line"]), entry) for entry in entries]


def without_nulls(value: "JsonValue") -> Any:
    """Return the value without the members that are null, at every depth but within free-form objects."""
    if isinstance(value, dict):
        return {
            name: member if name in FREE_FORM and isinstance(member, dict) else without_nulls(member)
            for name, member in value.items()
            if member is not None
        }
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _expand(line: str | list[Any]) -> bytes:
    parts = [line] if isinstance(line, str) else line
    return b"".join(_part(part) for part in parts)


def _part(part: str | dict[str, Any]) -> bytes:
    if isinstance(part, str):
        return part.encode()
    return bytes.fromhex(part["hex"]) if "hex" in part else part["repeat"].encode() * part["times"]
