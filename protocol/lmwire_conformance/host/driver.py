"""The kit's end of the driver: instructions to it, and what it saw. HOSTS.md describes both."""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from .case_failure import CaseFailure, quote
from .reported_request import CONTENT, ReportedRequest, Seen, Stream, without_empty_members

REPORT_KINDS: Final = ("started", "start_failed", "text", "tool_call", "done", "failed", "closed")
"""What a driver may have seen."""
_STDERR_BYTES: Final = 2000


@dataclass
class DriverState:
    """What the driver has said in all."""

    start: str = ""
    """`started` or `start_failed`."""
    closed: bool = False
    requests: dict[str, ReportedRequest] = field(default_factory=dict)


class Driver:
    """One run of the host's driver.

    Args:
        command: the driver.
        worker_command: what it is to spawn as its worker.
        log: takes down what is said, for the report of a failure.
        timeout: seconds that any wait may take.

    Raises:
        OSError: the driver cannot be spawned.
    """

    def __init__(
        self, command: Sequence[str], worker_command: Sequence[str], log: Callable[[str], None], timeout: float
    ) -> None:
        self._log = log
        self._timeout = timeout
        self._accounts = DriverState()
        self._output: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by kill)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=os.environ | {"LMWIRE_WORKER_COMMAND": json.dumps(list(worker_command))},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def instruct(self, **instruction: Any) -> None:
        """Gives an instruction; does not wait for what comes of it."""
        text = json.dumps(instruction)
        self._log(f"  do  {quote(text)}")
        if instruction["do"] == "request":
            self._accounts.requests[instruction["name"]] = ReportedRequest()
        assert self._process.stdin
        with suppress(BrokenPipeError):  # the missing answer will tell
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()

    def expect_start(self, wanted: str) -> None:
        """Waits for `started` or `start_failed`."""
        self._wait(f'{{"saw":"{wanted}"}}', lambda: self._accounts.start)
        if self._accounts.start != wanted:
            raise CaseFailure(f'{{"saw":"{wanted}"}}', f'{{"saw":"{self._accounts.start}"}}')

    def start_outcome(self, seconds: float) -> str:
        """Takes in what the driver says of its start, for some seconds: `started`, `start_failed` or nothing."""
        self._comes_within(seconds, lambda: self._accounts.start)
        return self._accounts.start

    def expect_text(self, name: str, wanted: str, stream: Stream = CONTENT) -> None:
        """Waits until the texts of a request, joined, are `wanted`."""
        account = self._accounts.requests[name]

        def has_come() -> object:
            seen = account.text(stream)
            return len(seen) >= len(wanted) or account.end or not wanted.startswith(seen)

        self._wait(f"the text {quote(wanted)!r} of {name!r}", has_come)
        self._compare(f"the text of {name!r}", account.text(stream), wanted)

    def expect_done(
        self,
        name: str,
        *,
        text: str = "",
        texts: Mapping[Stream, str] = MappingProxyType({}),
        finish_reason: str | None = "stop",
        choices: Sequence[str] | None = None,
        calls: Mapping[int, list[Seen]] = MappingProxyType({}),
        logprobs: Mapping[int, list[Seen]] = MappingProxyType({}),
    ) -> None:
        """Waits for a request's success.

        Args:
            name: The request.
            text: The content of its first choice.
            texts: The text of other choices and channels; those that are not named have none.
            finish_reason: None for a request that has none.
            choices: With several choices, how each ended.
            calls: The whole tool calls of each choice that has any.
            logprobs: The log-probabilities of each choice, if they were asked for.
        """
        wanted: Seen = {"saw": "done", "name": name}
        if finish_reason is not None:
            wanted["finish_reason"] = finish_reason
        if choices is not None:
            wanted["choices"] = list(choices)
        account = self._expect_end(name, wanted, {CONTENT: text, **texts}, calls)
        if logprobs:
            self._compare(
                f"the log-probabilities of {name!r}",
                account.logprobs,
                {choice: without_empty_members(items) for choice, items in logprobs.items()},
            )

    def expect_failed(self, name: str, code: str | None, *, text: str = "", retryable: bool | None = None) -> None:
        """Waits for a request's failure, with this code (None: any) and the text that came before."""
        wanted: Seen = {"saw": "failed", "name": name}
        if code is not None:
            wanted["code"] = code
        if retryable is not None:
            wanted["retryable"] = retryable
        self._expect_end(name, wanted, {CONTENT: text})

    def has_ended(self, name: str, seconds: float) -> bool:
        """Whether a request has ended, in whatever way, or does within some seconds."""
        account = self._accounts.requests[name]
        return self._comes_within(seconds, lambda: account.end)

    def expect_end(self, name: str) -> None:
        """Waits for a request's end, whatever it is."""
        account = self._accounts.requests[name]
        self._wait(f"the end of {name!r}", lambda: account.end)

    @property
    def closed(self) -> bool:
        """Whether `closed` has been seen."""
        return self._accounts.closed

    def expect_closed(self) -> None:
        """Waits for `closed`."""
        self._wait('{"saw":"closed"}', lambda: self._accounts.closed)

    def finish(self) -> None:
        """Ends the driver's input, at which it must exit with code 0, and looks at what it said last."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            code = self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            raise CaseFailure("a driver that exits when its stdin ends", f"it runs after {self._timeout:g} s") from None
        while line := self._output.get(timeout=self._timeout):
            self._enter(line)
        if code != 0:
            raise CaseFailure("a driver that exits with code 0", f"code {code}{self.stderr_tail}")

    @property
    def stderr_tail(self) -> str:
        """The end of the driver's stderr, to be put behind a sentence."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        tail = self._stderr.read().decode(errors="replace").strip()
        return f"; the end of the driver's stderr:\n{tail}" if tail else ""

    def kill(self) -> None:
        """Ends the driver and what it started in its own group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close_pipes(self) -> None:
        """Closes the pipes of a driver that is gone, when its workers, which may hold them too, are gone."""
        self._reader.join(self._timeout)
        for file in (self._process.stdin, self._process.stdout, self._stderr):
            assert file
            with suppress(BrokenPipeError):
                file.close()

    def _expect_end(
        self,
        name: str,
        wanted: Seen,
        texts: Mapping[Stream, str],
        calls: Mapping[int, list[Seen]] = MappingProxyType({}),
    ) -> ReportedRequest:
        account = self._accounts.requests[name]
        self._wait(json.dumps(wanted), lambda: account.end)
        assert account.end
        if any(account.end.get(key) != value for key, value in wanted.items()):
            raise CaseFailure(json.dumps(wanted), json.dumps(account.end))
        for stream in {**texts, **account.texts}:
            choice, channel = stream
            where = f"the text of {name!r}" + ("" if stream == CONTENT else f", choice {choice}, {channel}")
            self._compare(where, account.text(stream), texts.get(stream, ""))
        self._compare(f"the tool calls of {name!r}", account.calls, dict(calls))
        return account

    def _compare(self, what: str, seen: object, wanted: object) -> None:
        if seen != wanted:
            raise CaseFailure(f"{what}: {quote(_shown(wanted))}", quote(_shown(seen)))

    def _wait(self, wanted: str, has_come: Callable[[], object]) -> None:
        if not self._comes_within(self._timeout, has_come):
            raise CaseFailure(wanted, f"nothing of the kind within {self._timeout:g} s{self.stderr_tail}")

    def _comes_within(self, seconds: float, has_come: Callable[[], object]) -> bool:
        """Takes in what the driver says until it has come, or the time has passed."""
        deadline = time.monotonic() + seconds
        while not has_come():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with suppress(queue.Empty):
                line = self._output.get(timeout=left)
                if not line:
                    raise CaseFailure("a driver that runs until its stdin ends", f"it has ended{self.stderr_tail}")
                self._log(f"  saw {quote(line)}")
                self._enter(line)
        return True

    def _enter(self, line: bytes) -> None:
        try:
            seen = json.loads(line)
            kind = seen["saw"]
        except (ValueError, TypeError, KeyError):
            raise CaseFailure("JSON objects with a member `saw` from the driver", quote(line)) from None
        if kind not in REPORT_KINDS:
            raise CaseFailure(f"one of {', '.join(REPORT_KINDS)} from the driver", quote(line))
        if kind == "closed":
            self._accounts.closed = True
        elif kind in ("started", "start_failed"):
            self._accounts.start = kind
        else:
            self._enter_of_request(seen, line)

    def _enter_of_request(self, seen: Seen, line: bytes) -> None:
        account = self._accounts.requests.get(seen.get("name", ""))
        if account is None:
            raise CaseFailure("the names of requests that the driver was given", quote(line))
        account.add(seen, line)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._output.put(line)
        self._output.put(b"")


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
