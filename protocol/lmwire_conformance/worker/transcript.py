"""Transcripts: golden conversations in files. The README.md beside them describes the format."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lmwire_protocol.json_value import JsonValue

from .matching import MATCHERS, is_matcher

STEPS: Final[dict[str, tuple[str, ...]]] = {
    "send": ("times",),
    "write": (),
    "close": (),
    "signal": (),
    "read": (),
    "wait": (),
    "start": (),
    "answer": ("times", "at_least"),
    "event": (),
    "line": ("after",),
    "lines": (),
    "order": ("times",),
    "exit": ("within",),
}
"""Every kind of step, and the members that it may have besides `rule`."""

_HEAD: Final = {"transcript", "says"}
_OPTIONAL_HEAD: Final = {"needs"}


@dataclass(frozen=True)
class Step:
    """An action of the host, or an expectation of the worker.

    Args:
        kind: One of `STEPS`.
        what: The value of the member with that name.
        options: The other members, except `rule`.
        rule: The rule that the step proves, if the transcript is about several.
        number: The line of the step in the file.
    """

    kind: str
    what: Any
    options: dict[str, Any]
    rule: str | None
    number: int

    @property
    def times(self) -> range:
        """Return the numbers that replace `{n}`; only 1 if the step is not repeated."""
        return range(1, self.options.get("times", 1) + 1)


@dataclass(frozen=True)
class Transcript:
    """One conversation.

    Args:
        name: The name of the file, without `.jsonl`.
        about: A sentence about the purpose.
        says: For each rule that it proves, a sentence of PROTOCOL.md under that rule.
        needs: Features that a worker must list in its reply to `hello`.
        steps: The steps, in order.
    """

    name: str
    about: str
    says: dict[str, str]
    needs: frozenset[str]
    steps: tuple[Step, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the rules that the transcript proves."""
        return tuple(self.says)


def folder() -> Path:
    """Return the folder of the transcripts: within the installed package, or beside it in a checkout."""
    installed = Path(__file__).parents[1] / "transcripts"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "transcripts"


def read_all(where: Path | None = None) -> list[Transcript]:
    """Return every transcript of a folder, sorted by name.

    Raises:
        ValueError: A file does not have the format.
    """
    return [read(path) for path in sorted((where or folder()).glob("*.jsonl"))]


def read(path: Path) -> Transcript:
    """Return the transcript in a file.

    Raises:
        ValueError: The file does not have the format.
    """
    entries = [
        (number, _object(text, f"{path.name}:{number}"))
        for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if text.strip()
    ]
    if not entries or set(entries[0][1]) - _OPTIONAL_HEAD != _HEAD:
        raise ValueError(f"{path.name}: the first line must have the members {sorted(_HEAD)}, and may have `needs`")
    head = entries[0][1]
    steps = tuple(_step(entry, number, path.name) for number, entry in entries[1:])
    for step in steps:
        if step.rule is not None and step.rule not in head["says"]:
            raise ValueError(f"{path.name}:{step.number}: {step.rule} is not in `says`")
    return Transcript(path.stem, head["transcript"], head["says"], frozenset(head.get("needs", ())), steps)


def substitute_n(value: JsonValue, n: int) -> Any:
    """Return a value with `{n}` in its strings replaced by a number."""
    if isinstance(value, str):
        return value.replace("{n}", str(n))
    if isinstance(value, dict):
        return {name: substitute_n(item, n) for name, item in value.items()}
    return [substitute_n(item, n) for item in value] if isinstance(value, list) else value


def to_bytes(parts: str | list[Any]) -> bytes:
    """Return the bytes of a string or of a list of parts, which have the format of protocol/vectors."""
    return b"".join(_part_bytes(part) for part in ([parts] if isinstance(parts, str) else parts))


def _part_bytes(part: Any) -> bytes:
    if isinstance(part, str):
        return part.encode()
    return bytes.fromhex(part["hex"]) if "hex" in part else part["repeat"].encode() * part["times"]


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{where}: not an object")
    return value


def _step(entry: dict[str, Any], number: int, file: str) -> Step:
    kinds = [name for name in entry if name in STEPS]
    if len(kinds) != 1:
        raise ValueError(f"{file}:{number}: a step has one of {', '.join(STEPS)}")
    (kind,) = kinds
    rule = entry.get("rule")
    options = {name: value for name, value in entry.items() if name not in (kind, "rule")}
    if unknown := set(options) - set(STEPS[kind]):
        raise ValueError(f"{file}:{number}: `{kind}` has no {', '.join(sorted(unknown))}")
    for name in _invalid_matchers(entry[kind]):
        raise ValueError(f"{file}:{number}: {name} is not a matcher, or has other members beside it")
    return Step(kind, entry[kind], options, rule, number)


def _invalid_matchers(pattern: JsonValue) -> Iterator[str]:
    """Yield names that look like matchers and are not valid as such."""
    if isinstance(pattern, list):
        for item in pattern:
            yield from _invalid_matchers(item)
    elif isinstance(pattern, dict):
        if not is_matcher(pattern):
            yield from (name for name in pattern if re.match(r"\$", name) or name in MATCHERS)
        for item in pattern.values():
            yield from _invalid_matchers(item)
