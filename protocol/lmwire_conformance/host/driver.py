"""The driver as one case sees it: instructions to it, and its reports. HOSTS.md describes both."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final

from .case_failure import CaseFailure, DriverExited, quote
from .driver_process import DriverProcess
from .reports import CONTENT, Report, ReportedRequest, TextKey, without_empty_members

REPORT_KINDS: Final = ("started", "start_failed", "text", "tool_call", "vector", "samples", "done", "failed", "closed")
"""The values of `saw`."""


class Driver:
    """Instructions to the driver during one case, and its reports.

    Requests are named within the case: the number of the case is appended to the name that the driver knows, since one
    process of the driver can play several cases.

    Args:
        process: The driver.
        log: Called with each line, for the report of a failure.
        timeout: Maximum seconds of any wait.

    Attributes:
        started: `started` or `start_failed` once the driver has reported it.
        closed: True once the driver has reported `closed`.
    """

    def __init__(self, process: DriverProcess, log: Callable[[str], None], timeout: float) -> None:
        self.started = ""
        self.closed = False
        self._process = process
        self._log = log
        self._timeout = timeout
        self._requests: dict[str, ReportedRequest] = {}
        self._closing = False
        process.cases += 1
        self._case = process.cases

    def instruct(self, **instruction: Any) -> None:
        """Send an instruction, without waiting for its result."""
        self._closing |= instruction["do"] == "close"
        if "name" in instruction:
            name = instruction["name"]
            instruction["name"] = f"{name}.{self._case}"
            if instruction["do"] == "request":
                self._requests[name] = self._process.requests[instruction["name"]] = ReportedRequest()
        text = json.dumps(instruction)
        self._log(f"  do  {quote(text)}")
        self._process.write(text)

    def stopped(self) -> AbstractContextManager[None]:
        """Stop the host's process during a block: what happens there is news to it all at once."""
        return self._process.stopped()

    def cancel(self, name: str) -> None:
        """Instruct the driver to cancel a request."""
        self.instruct(do="cancel", name=name)

    def expect_start(self, expected: str) -> None:
        """Wait for `started` or `start_failed`."""
        self._wait(f'{{"saw":"{expected}"}}', lambda: self.started)
        if self.started != expected:
            raise CaseFailure(f'{{"saw":"{expected}"}}', f'{{"saw":"{self.started}"}}')

    def start_outcome(self, seconds: float) -> str:
        """Return `started`, `start_failed`, or an empty string if neither is reported within some seconds."""
        self._comes_within(seconds, lambda: self.started)
        return self.started

    def expect_text(self, name: str, expected: str, key: TextKey = CONTENT) -> None:
        """Wait until the texts of a request, joined, are `expected`.

        Args:
            name: The request.
            expected: The text.
            key: The choice and the channel of the text.
        """
        request = self._requests[name]

        def has_come() -> object:
            text = request.text(key)
            return len(text) >= len(expected) or request.end or not expected.startswith(text)

        self._wait(f"the text {quote(expected)!r} of {name!r}", has_come)
        self._compare(f"the text of {name!r}", request.text(key), expected)

    def expect_done(
        self,
        name: str,
        *,
        text: str = "",
        texts: Mapping[TextKey, str] = MappingProxyType({}),
        finish_reason: str | None = "stop",
        choices: Sequence[str] | None = None,
        calls: Mapping[int, list[Report]] = MappingProxyType({}),
        logprobs: Mapping[int, list[Report]] = MappingProxyType({}),
    ) -> None:
        """Wait for a request's success.

        Args:
            name: The request.
            text: The content of its first choice.
            texts: The texts of other choices and channels. All others are empty.
            finish_reason: The finish reason, or None if the command has none.
            choices: The finish reason of each choice, if there are several.
            calls: The whole tool calls by choice.
            logprobs: The log-probabilities by choice, if the request asks for them.
        """
        expected: Report = {"saw": "done"}
        if finish_reason is not None:
            expected["finish_reason"] = finish_reason
        if choices is not None:
            expected["choices"] = list(choices)
        request = self._expect_end(name, expected, {CONTENT: text, **texts}, calls)
        if logprobs:
            wanted = {choice: without_empty_members(items) for choice, items in logprobs.items()}
            self._compare(f"the log-probabilities of {name!r}", request.logprobs, wanted)

    def expect_failed(self, name: str, code: str | None, *, text: str = "", retryable: bool | None = None) -> None:
        """Wait for a request's failure.

        Args:
            name: The request.
            code: The error code, or None for any.
            text: The content that came before.
            retryable: The value of `retryable`, or None for any.
        """
        expected: Report = {"saw": "failed"}
        if code is not None:
            expected["code"] = code
        if retryable is not None:
            expected["retryable"] = retryable
        self._expect_end(name, expected, {CONTENT: text})

    def expect_values(self, name: str, vectors: Mapping[int, list[float]], samples: Sequence[int]) -> None:
        """Compare the vectors and samples of a request that has ended, if the driver reports any.

        Args:
            name: The request.
            vectors: The numbers of each vector by its index.
            samples: The samples of the speech.
        """
        request = self._requests[name]
        if request.vectors or request.samples:
            self._compare(f"the vectors of {name!r}", request.vectors, dict(vectors))
            self._compare(f"the samples of {name!r}", request.samples, list(samples))

    def end_of(self, name: str) -> Report:
        """Wait for a request's success or failure, and return the report."""
        self._wait(f"the end of {name!r}", lambda: self._requests[name].end)
        end = self._requests[name].end
        assert end
        return end

    def has_ended(self, name: str, seconds: float) -> bool:
        """Return whether a request has ended in any way, or ends within some seconds."""
        return self._comes_within(seconds, lambda: self._requests[name].end)

    def expect_closed(self) -> None:
        """Wait for `closed`."""
        self._wait('{"saw":"closed"}', lambda: self.closed)

    def finish(self) -> None:
        """Close the driver's stdin, wait for its exit with code 0, and check its last reports."""
        self._process.wait_exit()
        while line := self._process.read(self._timeout):
            self._add(line)

    @property
    def stderr_tail(self) -> str:
        """The end of the driver's stderr, as the end of a sentence."""
        return self._process.stderr_tail

    def _expect_end(
        self,
        name: str,
        expected: Report,
        texts: Mapping[TextKey, str],
        calls: Mapping[int, list[Report]] = MappingProxyType({}),
    ) -> ReportedRequest:
        request = self._requests[name]
        shown = json.dumps({"saw": expected["saw"], "name": name, **expected})
        self._wait(shown, lambda: request.end)
        assert request.end
        if any(request.end.get(key) != value for key, value in expected.items()):
            raise CaseFailure(shown, json.dumps(request.end))
        for key in {**texts, **request.texts}:
            choice, channel = key
            where = f"the text of {name!r}" + ("" if key == CONTENT else f", choice {choice}, {channel}")
            self._compare(where, request.text(key), texts.get(key, ""))
        self._compare(f"the tool calls of {name!r}", request.calls, dict(calls))
        return request

    def _compare(self, what: str, seen: object, expected: object) -> None:
        if seen != expected:
            raise CaseFailure(f"{what}: {quote(_as_text(expected))}", quote(_as_text(seen)))

    def _wait(self, expected: str, has_come: Callable[[], object]) -> None:
        if not self._comes_within(self._timeout, has_come):
            raise CaseFailure(expected, f"no such line within {self._timeout:g} s{self.stderr_tail}")

    def _comes_within(self, seconds: float, has_come: Callable[[], object]) -> bool:
        """Read the driver's lines until `has_come` returns true or the time has passed; return whether it did."""
        deadline = time.monotonic() + seconds
        while not has_come():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            line = self._process.read(remaining)
            if line == b"":
                raise DriverExited("a driver that runs until its stdin ends", f"it has ended{self.stderr_tail}")
            if line:
                self._log(f"  saw {quote(line)}")
                self._add(line)
        return True

    def _add(self, line: bytes) -> None:
        """Add a line of the driver to what is known."""
        try:
            report = json.loads(line)
            kind = report["saw"]
        except (ValueError, TypeError, KeyError):
            raise CaseFailure("JSON objects with a member `saw` from the driver", quote(line)) from None
        if kind not in REPORT_KINDS:
            raise CaseFailure(f"one of {', '.join(REPORT_KINDS)} from the driver", quote(line))
        if kind == "closed":
            if not self._closing or self.closed:
                raise CaseFailure("one `closed` for each `close`", quote(line))
            self.closed = True
        elif kind in ("started", "start_failed"):
            if self.started:
                raise CaseFailure("one `started` or `start_failed` for each `start`", quote(line))
            self.started = kind
        else:
            self._add_to_request(report, line)

    def _add_to_request(self, report: Report, line: bytes) -> None:
        name = str(report.get("name", ""))
        if (request := self._process.requests.get(name)) is None:
            raise CaseFailure("the names of requests that the driver was given", quote(line))
        case = int(name.rpartition(".")[2])
        try:
            request.add(report, line)
        except CaseFailure:
            if case == self._case:
                raise
            self._process.late_failures.add(case)


def _as_text(value: object) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
