"""What the driver has said of one request, put together."""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from .case_failure import CaseFailure, quote

Seen = dict[str, Any]
"""What the driver says it saw; HOSTS.md describes it."""
Stream = tuple[int, str]
"""A choice and a channel."""

CHANNELS: Final = ("content", "reasoning")
"""The channels that there are; text of another is not looked at."""
CONTENT: Final[Stream] = (0, "content")


@dataclass
class ReportedRequest:
    """One request as the driver has told it so far."""

    texts: dict[Stream, str] = field(default_factory=dict)
    """Without those that are empty."""
    calls: dict[int, list[Seen]] = field(default_factory=dict)
    """By choice: each call's `id`, `name` and `arguments`, the latter as an object."""
    logprobs: dict[int, list[Seen]] = field(default_factory=dict)
    """By choice."""
    end: Seen | None = None

    def text(self, stream: Stream = CONTENT) -> str:
        """The text of a choice and channel."""
        return self.texts.get(stream, "")

    def add(self, seen: Seen, line: bytes) -> None:
        """Takes in what the driver said next.

        Raises:
            Failure: it may not say that.
        """
        if self.end:
            raise CaseFailure(f"nothing more of {seen['name']!r} after its end", quote(line))
        match seen["saw"]:
            case "text":
                self._add_text(seen, line)
            case "tool_call":
                self._add_call(seen, line)
            case _:
                self.end = seen

    def _add_text(self, seen: Seen, line: bytes) -> None:
        text, channel = seen.get("text"), seen.get("channel") or "content"
        if not isinstance(text, str):
            raise CaseFailure("a member `text`, which is a string", quote(line))
        stream = _choice(seen), channel
        if text and channel in CHANNELS:
            self.texts[stream] = self.text(stream) + text
        if logprobs := seen.get("logprobs"):
            self.logprobs.setdefault(_choice(seen), []).extend(without_empty_members(logprobs))

    def _add_call(self, seen: Seen, line: bytes) -> None:
        try:
            call = {name: seen["call"][name] for name in ("id", "name", "arguments")}
            if isinstance(call["arguments"], str):
                call["arguments"] = json.loads(call["arguments"])
        except (ValueError, TypeError, KeyError):
            what = "a member `call` with the call's `id`, `name` and `arguments`, an object or its JSON text"
            raise CaseFailure(what, quote(line)) from None
        self.calls.setdefault(_choice(seen), []).append(call)


def without_empty_members(logprobs: list[Seen]) -> list[Seen]:
    """Log-probabilities without the members that say nothing."""
    told = [{**logprob, "top": without_empty_members(logprob.get("top") or [])} for logprob in logprobs]
    return [{name: value for name, value in logprob.items() if value not in (None, [])} for logprob in told]


def _choice(seen: Seen) -> int:
    return seen.get("choice") or 0
