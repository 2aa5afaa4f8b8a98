"""The error codes of protocol 1, and the exception that carries one."""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, tuple[bool, str]]] = {
    "parse_error": (False, "the line is not UTF-8, not JSON or not an object"),
    "line_too_long": (False, "the line is longer than hello's limits.line_in_bytes; it was skipped"),
    "invalid_request": (False, "a field is missing, unknown, of the wrong type or out of range; `field` names it"),
    "unknown_command": (False, "this worker has no such command"),
    "duplicate_id": (False, "the id is in flight; `bad_id` names it, and that request goes on"),
    "unsupported_protocol": (False, "no common protocol version; `protocols` lists the worker's; it exits 76"),
    "busy": (True, "too many unfinished requests or queued bytes; send it again when some have ended"),
    "draining": (False, "quit was accepted; no further requests are served"),
    "cancelled": (False, "a command without a partial result was cancelled"),
    "not_loaded": (False, "no model is loaded"),
    "model_not_found": (False, "the model is not on disk and was not fetched; retryable if the network failed"),
    "bad_model": (False, "the model's files are damaged or incomplete"),
    "unsupported": (False, "the model, or this installation, cannot serve this"),
    "context_overflow": (False, "the prompt is longer than the model's context"),
    "out_of_memory": (False, "it can never fit into memory"),
    "engine_error": (False, "the model library failed on this request"),
    "internal": (False, "a bug in the worker"),
}
"""Every code that a worker sends: (retryable, meaning). Retryable: the same request can succeed later."""

CLIENT_CODES: Final[dict[str, str]] = {
    "worker_lost": "the pipe ended, or the protocol was broken, before the request's terminal",
    "timeout": "the client gave up waiting",
}
"""Codes that clients report to their own users. They are never on the wire."""

EXIT_CODES: Final[dict[int, str]] = {
    0: "clean: after quit, end of input, SIGTERM or SIGHUP",
    64: "wrong use of the worker's command line",
    70: "a bug in the worker, or its engine died; every request was ended with `internal`",
    74: "the host is gone: its end of stdout was closed, or `host_pid` ended",
    76: "the host and the worker have no protocol version in common",
}
"""The exit codes of a worker and their meanings. A worker that a signal killed has none of them."""


class RequestError(Exception):
    """A request that ends in an `error` event.

    Args:
        code: One of `CODES`.
        message: A sentence for a person: the problem, its place and the remedy.
        field: Path of the field at fault, such as `messages[2].content[0]`.
        retryable: Overrides the value of the code, for instance for `model_not_found` after a network failure.
    """

    def __init__(self, code: str, message: str, *, field: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.retryable = CODES[code][0] if retryable is None else retryable
