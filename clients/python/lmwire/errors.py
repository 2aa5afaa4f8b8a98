"""Everything the client raises.

LmwireError
├── RequestFailed          the worker answered `error`: code, field, retryable
├── NotServed              the worker's `features` lack what the request uses; it was not sent
├── RequestTimeout         the caller's time ran out (also a TimeoutError)
├── WorkerLost             the request has no answer and will get none
│   ├── WorkerExited       the process ended: exit code or signal, last lines of stderr
│   ├── WorkerHung         it made no progress for too long, and a supervisor ended it
│   └── ProtocolViolation  it wrote what no worker may write, and was killed
├── StartFailed            it could not be spawned, or did not answer `hello`; the cause is chained
└── WorkerUnavailable      it died too often; the supervisor starts none for a while

A command that cannot be written raises Python's own TypeError or UnicodeEncodeError, and nothing is sent.
"""

import signal
from collections.abc import Sequence
from typing import ClassVar

from lmwire_protocol import events

_QUOTED_LINES = 10


class LmwireError(Exception):
    """What all errors of this package share."""


class RequestFailed(LmwireError):
    """The worker refused a request or failed on it, and goes on serving others.

    Args:
        event: the `error` event, with the fields that few codes have.
    """

    def __init__(self, event: events.Error) -> None:
        super().__init__(event.error)
        self.event = event
        self.code = event.code
        self.field = event.field
        self.retryable = event.retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.event.error}"


class NotServed(LmwireError):
    """The worker does not serve what the request asks for, and was not asked.

    Args:
        worker: its name and version.
        features: what its reply to `hello` would have to list.
    """

    code: ClassVar[str] = "unsupported"

    def __init__(self, worker: str, features: Sequence[str]) -> None:
        super().__init__(f"the worker ({worker}) does not serve {', '.join(features)}: leave that out, or update it")
        self.features = list(features)


class RequestTimeout(LmwireError, TimeoutError):
    """The request took longer than its caller allowed. It was cancelled; the worker goes on."""

    code: ClassVar[str] = "timeout"

    def __init__(self, command: str, timeout: float) -> None:
        super().__init__(f"`{command}` took longer than {timeout:g} s and was cancelled")


class WorkerLost(LmwireError):
    """The worker is gone, and every request that it had not ended fails with this."""

    code: ClassVar[str] = "worker_lost"


class WorkerExited(WorkerLost):
    """The worker's process ended.

    Args:
        returncode: its exit code, or minus the number of the signal that ended it.
        stderr_tail: the last lines that it wrote to stderr.
    """

    def __init__(self, returncode: int, stderr_tail: Sequence[str] = ()) -> None:
        super().__init__(returncode, stderr_tail)
        self.returncode = returncode
        self.stderr_tail = list(stderr_tail)

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that ended it, if one did."""
        return signal.Signals(-self.returncode) if -self.returncode in set(signal.Signals) else None

    def __str__(self) -> str:
        how = f"was ended by {self.signal.name}" if self.signal else f"exited with code {self.returncode}"
        tail = "".join(f"\n    {line}" for line in self.stderr_tail[-_QUOTED_LINES:])
        return f"the worker {how}" + (f"; the end of its stderr:{tail}" if tail else "")


class WorkerHung(WorkerLost):
    """The worker made no progress for longer than its supervisor allows, so the supervisor ends it.

    Args:
        step_limit: the supervisor's limit, in seconds.
        answers: whether it still answered `ping`: its engine hung, and not the whole process.
    """

    def __init__(self, step_limit: float, answers: bool) -> None:  # positional, so that it can be copied
        super().__init__(step_limit, answers)
        self.step_limit = step_limit
        self.answers = answers

    def __str__(self) -> str:
        how = "made no progress" if self.answers else "did not answer"
        return f"the worker {how} for {self.step_limit:g} s while requests waited for it, and was ended"


class ProtocolViolation(WorkerLost):
    """The worker wrote a line that breaks the protocol. Nothing after it can be trusted, so it was killed."""


class StartFailed(LmwireError):
    """No worker came up. `__cause__` is the reason: an OSError, or one of the errors above."""


class WorkerUnavailable(LmwireError):
    """The worker ended too often, and is not started again before `retry_after` seconds have passed."""

    def __init__(self, exits: int, retry_after: float) -> None:
        super().__init__(f"the worker ended {exits} times in short order; it can be tried again in {retry_after:.0f} s")
        self.retry_after = retry_after
