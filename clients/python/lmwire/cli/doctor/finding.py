"""Results of checks."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    level: Level
    topic: str
    """The thing that was checked."""
    text: str
    fix: str | None = None
    """The way to mend it; None if nothing is wrong."""
