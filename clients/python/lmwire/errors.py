"""Exceptions of the client.

LmwireError
├── RequestFailed          the worker sent `error`: code, field, retryable
├── UnsupportedByWorker    the worker lacks a feature of the request, which was not sent
├── RequestTimeout         the caller's timeout expired (also a TimeoutError)
├── WorkerLost             the worker is gone, and its requests get no answer
│   ├── WorkerExited       the process ended: exit code or signal, last lines of stderr
│   ├── WorkerHung         the worker made no progress for too long, and a supervisor ended it
│   └── ProtocolViolation  the worker broke the protocol, and was killed
├── StartFailed            the worker could not be spawned, or did not answer `hello`; the cause is chained
└── WorkerUnavailable      workers failed too often; the supervisor starts none for a while

A command that cannot be encoded raises Python's own TypeError or UnicodeEncodeError, and is not sent.
"""

import signal
from collections.abc import Sequence
from typing import ClassVar

from lmwire_protocol import events

_QUOTED_STDERR_LINES = 10


class LmwireError(Exception):
    """Base class of all exceptions of this package."""


class RequestFailed(LmwireError):
    """The worker refused a request or failed on it. It still serves other requests.

    Args:
        event: The `error` event, which has more fields for some codes.
    """

    def __init__(self, event: events.Error) -> None:
        super().__init__(event.error)
        self.event = event
        self.code = event.code
        self.field = event.field
        self.retryable = event.retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.event.error}"


class UnsupportedByWorker(LmwireError):
    """The worker lacks a feature that the request uses. The request was not sent.

    Args:
        worker: The worker's name and version.
        features: The features that its reply to `hello` does not list.
    """

    code: ClassVar[str] = "unsupported"

    def __init__(self, worker: str, features: Sequence[str]) -> None:
        super().__init__(f"the worker ({worker}) does not serve {', '.join(features)}: leave that out, or update it")
        self.features = list(features)


class RequestTimeout(LmwireError, TimeoutError):
    """The caller's timeout expired, and the request was cancelled. The worker still serves other requests.

    Args:
        command: The name of the command.
        timeout: The timeout, in seconds.
    """

    code: ClassVar[str] = "timeout"

    def __init__(self, command: str, timeout: float) -> None:
        super().__init__(f"`{command}` took longer than {timeout:g} s and was cancelled")


class WorkerLost(LmwireError):
    """The worker is gone. Every request without a terminal fails with this."""

    code: ClassVar[str] = "worker_lost"


class WorkerExited(WorkerLost):
    """The worker's process ended.

    Args:
        returncode: The exit code, or the negated number of the signal that ended the process.
        stderr_tail: The last lines of stderr.
    """

    def __init__(self, returncode: int, stderr_tail: Sequence[str] = ()) -> None:
        super().__init__(returncode, stderr_tail)
        self.returncode = returncode
        self.stderr_tail = list(stderr_tail)

    @property
    def signal(self) -> signal.Signals | None:
        """Return the signal that ended the process, or None if it exited."""
        return signal.Signals(-self.returncode) if -self.returncode in set(signal.Signals) else None

    def __str__(self) -> str:
        how = f"was ended by {self.signal.name}" if self.signal else f"exited with code {self.returncode}"
        tail = "".join(f"\n    {line}" for line in self.stderr_tail[-_QUOTED_STDERR_LINES:])
        return f"the worker {how}" + (f"; the end of its stderr:{tail}" if tail else "")


class WorkerHung(WorkerLost):
    """The worker made no progress for longer than its supervisor allows, so the supervisor ended it.

    Args:
        step_limit: The supervisor's limit, in seconds.
        answers: Whether the worker still answered `ping`. If so, only its engine hung.
    """

    def __init__(self, step_limit: float, answers: bool) -> None:  # positional arguments, so that `copy` works
        super().__init__(step_limit, answers)
        self.step_limit = step_limit
        self.answers = answers

    def __str__(self) -> str:
        how = "made no progress" if self.answers else "did not answer"
        return f"the worker {how} for {self.step_limit:g} s while requests waited for it, and was ended"


class ProtocolViolation(WorkerLost):
    """The worker wrote a line that breaks the protocol, so its output cannot be trusted, and it was killed."""


class StartFailed(LmwireError):
    """The worker did not start. `__cause__` is the reason: an OSError, or another exception of this package."""


class WorkerUnavailable(LmwireError):
    """Workers failed too often, and none is started for a while.

    Args:
        exits: Number of failures.
        retry_after: Time until the next start is allowed, in seconds.
    """

    def __init__(self, exits: int, retry_after: float) -> None:
        super().__init__(f"the worker ended {exits} times in short order; it can be tried again in {retry_after:.0f} s")
        self.retry_after = retry_after
