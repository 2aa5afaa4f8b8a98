"""Transcripts: golden conversations in files. README.md beside them is the format; what is not in it is refused."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
_MAY: Final = {"needs"}


@dataclass(frozen=True)
class Step:
    """One thing that the host does or waits for."""

    kind: str
    what: Any
    options: dict[str, Any]
    rule: str | None
    """The rule that it proves, when the transcript is about several."""
    number: int
    """Its line in the file."""

    @property
    def times(self) -> range:
        """The numbers that `{n}` stands for; one that is never used when there are none."""
        return range(1, self.options.get("times", 1) + 1)


@dataclass(frozen=True)
class Transcript:
    """One conversation.

    Args:
        name: the file's, without `.jsonl`.
        about: what it shows, in a sentence.
        says: for each rule that it proves, a sentence of PROTOCOL.md under that rule.
        needs: features that a worker must list in its reply to `hello`.
        steps: what happens, in order.
    """

    name: str
    about: str
    says: dict[str, str]
    needs: frozenset[str]
    steps: tuple[Step, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that it proves."""
        return tuple(self.says)


def folder() -> Path:
    """Where the transcripts are: within the installed package, or beside it in a checkout."""
    installed = Path(__file__).parents[1] / "transcripts"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "transcripts"


def read_all(where: Path | None = None) -> list[Transcript]:
    """Every transcript of a folder, by name.

    Raises:
        ValueError: a file is not of the format.
    """
    return [read(path) for path in sorted((where or folder()).glob("*.jsonl"))]


def read(path: Path) -> Transcript:
    """One transcript.

    Raises:
        ValueError: the file is not of the format.
    """
    entries = [
        (number, _object(text, f"{path.name}:{number}"))
        for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if text.strip()
    ]
    if not entries or set(entries[0][1]) - _MAY != _HEAD:
        raise ValueError(f"{path.name}: the first line must have the members {sorted(_HEAD)}, and may have `needs`")
    head = entries[0][1]
    steps = tuple(_step(entry, number, path.name) for number, entry in entries[1:])
    for step in steps:
        if step.rule is not None and step.rule not in head["says"]:
            raise ValueError(f"{path.name}:{step.number}: {step.rule} is not in `says`")
    return Transcript(path.stem, head["transcript"], head["says"], frozenset(head.get("needs", ())), steps)


def substitute_n(value: Any, n: int) -> Any:
    """The value with `{n}` in its strings replaced by a number."""
    if isinstance(value, str):
        return value.replace("{n}", str(n))
    if isinstance(value, dict):
        return {name: substitute_n(item, n) for name, item in value.items()}
    return [substitute_n(item, n) for item in value] if isinstance(value, list) else value


def to_bytes(pieces: str | list[Any]) -> bytes:
    """The bytes that a string or a list of pieces stands for; pieces are those of protocol/vectors."""
    return b"".join(_piece(piece) for piece in ([pieces] if isinstance(pieces, str) else pieces))


def _piece(piece: Any) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    return bytes.fromhex(piece["hex"]) if "hex" in piece else piece["repeat"].encode() * piece["times"]


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
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
    for name in _mistaken(entry[kind]):
        raise ValueError(f"{file}:{number}: {name} is no matcher, or does not stand alone")
    return Step(kind, entry[kind], options, rule, number)


def _mistaken(pattern: Any) -> Iterator[str]:
    """Names that look like matchers and are none."""
    if isinstance(pattern, list):
        for item in pattern:
            yield from _mistaken(item)
    elif isinstance(pattern, dict):
        if not is_matcher(pattern):
            yield from (name for name in pattern if re.match(r"\$", name) or name in MATCHERS)
        for item in pattern.values():
            yield from _mistaken(item)
