"""The driver's reports on one request, put together."""

import json
from dataclasses import dataclass, field
from typing import Any, Final, cast

from .case_failure import CaseFailure, quote

Report = dict[str, Any]
"""A line of the driver, as HOSTS.md describes it."""
TextKey = tuple[int, str]
"""A choice and a channel."""

CHANNELS: Final = ("content", "reasoning")
"""The channels of protocol 1. Text of other channels is ignored."""
CONTENT: Final[TextKey] = (0, "content")


@dataclass
class ReportedRequest:
    """The reports on one request so far."""

    texts: dict[TextKey, str] = field(default_factory=dict[TextKey, str])
    """Texts that are not empty, by choice and channel."""
    calls: dict[int, list[Report]] = field(default_factory=dict[int, list[Report]])
    """Tool calls by choice: each call's `id`, `name` and `arguments`, an object."""
    logprobs: dict[int, list[Report]] = field(default_factory=dict[int, list[Report]])
    """Log-probabilities by choice."""
    vectors: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    """Numbers of vectors by index."""
    samples: list[int] = field(default_factory=list[int])
    """Samples of a speech."""
    end: Report | None = None

    def text(self, key: TextKey = CONTENT) -> str:
        """Return the text of a choice and channel."""
        return self.texts.get(key, "")

    def add(self, report: Report, line: bytes) -> None:
        """Add a report.

        Args:
            report: The report.
            line: The same as the driver printed it.

        Raises:
            CaseFailure: The report is invalid here.
        """
        if self.end:
            raise CaseFailure(f"no report on {report['name']!r} after its end", quote(line))
        match report["saw"]:
            case "text":
                self._add_text(report, line)
            case "tool_call":
                self._add_call(report, line)
            case "vector":
                self.vectors.setdefault(report.get("index", -1), []).extend(_numbers(report, "values", line))
            case "samples":
                self.samples.extend(_numbers(report, "values", line))
            case _:
                self.end = report

    def _add_text(self, report: Report, line: bytes) -> None:
        text, channel = report.get("text"), report.get("channel") or "content"
        if not isinstance(text, str):
            raise CaseFailure("a member `text`, which is a string", quote(line))
        key = _choice(report), channel
        if text and channel in CHANNELS:
            self.texts[key] = self.text(key) + text
        if logprobs := report.get("logprobs"):
            self.logprobs.setdefault(_choice(report), []).extend(without_empty_members(logprobs))

    def _add_call(self, report: Report, line: bytes) -> None:
        try:
            call = {name: report["call"][name] for name in ("id", "name", "arguments")}
            if isinstance(call["arguments"], str):
                call["arguments"] = json.loads(call["arguments"])
        except (ValueError, TypeError, KeyError):
            what = "a member `call` with the call's `id`, `name` and `arguments`, an object or its JSON text"
            raise CaseFailure(what, quote(line)) from None
        self.calls.setdefault(_choice(report), []).append(call)


def without_empty_members(logprobs: list[Report]) -> list[Report]:
    """Return log-probabilities without members that are null or empty lists."""
    tidied = [{**logprob, "top": without_empty_members(logprob.get("top") or [])} for logprob in logprobs]
    return [{name: value for name, value in logprob.items() if value not in (None, [])} for logprob in tidied]


def _numbers(report: Report, member: str, line: bytes) -> list[Any]:
    values: Any = report.get(member)
    if not isinstance(values, list) or not {int, float}.issuperset(map(type, cast("list[Any]", values))):
        raise CaseFailure(f"a member `{member}`, which is a list of numbers", quote(line))
    return cast("list[Any]", values)


def _choice(report: Report) -> int:
    return report.get("choice") or 0
