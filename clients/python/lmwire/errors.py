"""Exceptions of the client.

LmwireError
├── RequestFailed          the worker sent `error`: code, field, retryable
│   ├── InvalidRequest     a field is missing, unknown, of the wrong type or out of range
│   ├── ContextOverflow    the prompt is longer than the model's context
│   ├── UnsupportedRequest the model or the installation cannot serve this
│   ├── ModelNotLoaded     no model is loaded
│   ├── ModelNotFound      the model is not on disk and was not fetched
│   ├── InvalidModel       the model's files are damaged or incomplete
│   ├── OutOfMemory        it can never fit into memory
│   ├── WorkerBusy         too many requests are unfinished; the same request can succeed later
│   ├── WorkerDraining     the worker is ending
│   ├── RequestCancelled   the request was cancelled before it had a partial result
│   └── InternalError      the model library failed, or the worker has a bug
├── UnsupportedByWorker    the worker lacks a feature of the request, which was not sent
├── InvalidAnswer          the answer is not a value of the type that `format` names (also a ValueError)
├── RequestTimeout         the caller's timeout expired (also a TimeoutError)
├── WorkerLost             the worker is gone, and its requests get no answer
│   ├── WorkerExited       the process ended: exit code or signal, last lines of stderr
│   │   └── WorkerClosed   the program has closed the worker
│   ├── WorkerHung         the worker made no progress for too long, and a supervisor ended it
│   └── ProtocolViolation  the worker broke the protocol, and was killed
├── StartFailed            the worker could not be spawned, or did not answer `hello`; the cause is chained
└── WorkerUnavailable      workers failed too often; the supervisor starts none for a while

A command that cannot be encoded raises Python's own TypeError or UnicodeEncodeError, and is not sent.
"""

import signal
from collections.abc import Sequence
from typing import ClassVar, Final

from lmwire_protocol import events

_QUOTED_STDERR_LINES = 10


class LmwireError(Exception):
    """Base class of all exceptions of this package."""


class RequestFailed(LmwireError):
    """The worker refused a request or failed on it. It still serves other requests.

    >>> try:
    ...     worker.chat("Hi", temperature=-1.0).text()
    ... except lmwire.InvalidRequest as error:
    ...     (error.code, error.field)
    ('invalid_request', 'temperature')

    The subclasses are the cases that programs treat differently. A code without one raises this class.

    Args:
        event: The `error` event, which has more fields for some codes.
    """

    codes: ClassVar[tuple[str, ...]] = ()
    """The codes of a subclass."""

    def __init__(self, event: events.Error) -> None:
        super().__init__(event.error)
        self.event = event
        self.code = event.code
        self.field = event.field
        self.retryable = event.retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.event.error}"


class InvalidRequest(RequestFailed):
    """A field is missing, unknown, of the wrong type or out of range, or the request is too large. `field` names it."""

    codes = ("invalid_request", "line_too_long")


class ContextOverflow(RequestFailed):
    """The prompt is longer than the model's context. `truncate` shortens it."""

    codes = ("context_overflow",)


class UnsupportedRequest(RequestFailed):
    """The model, or the worker's installation, cannot serve this. `field` names what to leave out, if anything."""

    codes = ("unsupported", "unknown_command")


class ModelNotLoaded(RequestFailed):
    """No model is loaded: call `load` first."""

    codes = ("not_loaded",)


class ModelNotFound(RequestFailed):
    """The model is not on disk and was not fetched. `retryable` is true if only the network failed."""

    codes = ("model_not_found",)


class InvalidModel(RequestFailed):
    """The model's files are damaged or incomplete."""

    codes = ("bad_model",)


class OutOfMemory(RequestFailed):
    """The model or the request can never fit into memory."""

    codes = ("out_of_memory",)


class WorkerBusy(RequestFailed):
    """Too many requests are unfinished. Send this one again when some have ended."""

    codes = ("busy",)


class WorkerDraining(RequestFailed):
    """The worker finishes earlier requests and then ends. It takes no more."""

    codes = ("draining",)


class RequestCancelled(RequestFailed):
    """The request was cancelled, and its command has no partial result."""

    codes = ("cancelled",)


class InternalError(RequestFailed):
    """The model library failed on the request, or the worker has a bug."""

    codes = ("engine_error", "internal")


_CLASS_OF_CODE: Final = {code: case for case in RequestFailed.__subclasses__() for code in case.codes}


def request_failed(event: events.Error) -> RequestFailed:
    """Return the exception for an `error` event: of the subclass for its code, if there is one."""
    return _CLASS_OF_CODE.get(event.code, RequestFailed)(event)


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


class InvalidAnswer(LmwireError, ValueError):
    """The answer is not a value of the type that `format` names: it was cut off, or the type refuses its content.

    Args:
        type_name: The name of the type.
        problem: The reason.
        text: The answer's text.
        finish_reason: The reason why the answer ended.
    """

    def __init__(self, type_name: str, problem: str, text: str, finish_reason: str) -> None:
        super().__init__(f"the answer is not a value of {type_name}: {problem}")
        self.text = text
        self.finish_reason = finish_reason


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


class WorkerClosed(WorkerExited):
    """The program has closed the worker, by `close`, by `quit` or by the end of its `with` block."""

    def __str__(self) -> str:
        return "the worker has been closed"


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
