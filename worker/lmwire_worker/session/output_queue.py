"""The bounded queue of output, and the thread that writes it.

Tokens never make the reader wait. Terminals and replies have limits of their own. When the host reads slowly, tokens
merge without loss; above `PAUSE_THRESHOLD_BYTES` the engine makes no step.
"""

import threading
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from lmwire_protocol import encode_tokens, limits
from lmwire_protocol.events import Token

MERGE_THRESHOLD_BYTES = 512 * 1024
"""Size of waiting stream output (tokens, progress) above which tokens of one request merge when written."""

PAUSE_THRESHOLD_BYTES = 1024 * 1024
"""Size of waiting stream output above which the engine makes no step."""

_TOKEN_BYTES = 8
_LINE_BYTES = 64
_LOGPROB_BYTES = 64


class _Line(NamedTuple):
    """A finished line."""

    data: bytes
    id: str | None = None
    """The request whose tokens do not merge across this line."""


class _Batch(NamedTuple):
    """All items that waited, and the bytes they count as."""

    items: list[Token | _Line]
    stream_bytes: int
    reply_bytes: int


class OutputQueue:
    """Takes output from every thread and writes it in order.

    Args:
        write: Writes finished lines. It may wait, and raises OSError after the host has closed its end.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # for the writer
        self._written = threading.Condition(self._lock)  # for those who wait for the writer
        self._queue: list[Token | _Line] = []
        self._stream_bytes = 0
        self._reply_bytes = 0
        self._writer_idle = False  # the writer waits for work; to notify it otherwise costs more than to look
        self._writing = False
        self._closed = False
        self._broken = False

    def put_tokens(self, token: Token) -> None:
        """Queue generated tokens."""
        size = _LINE_BYTES + len(token.token) + _TOKEN_BYTES * len(token.token_ids)
        if token.logprobs:
            size += sum(_LOGPROB_BYTES * (1 + len(logprob.top)) for logprob in token.logprobs)
        self._put(token, stream_bytes=size)

    def put_tool_call(self, id: str, line: bytes) -> None:
        """Queue a tool call's event.

        Args:
            id: The request.
            line: The event.
        """
        self._put(_Line(line, id), stream_bytes=len(line))

    def put_stream(self, line: bytes) -> None:
        """Queue a line that counts as stream output but never merges: progress, the bridge's tokens."""
        self._put(_Line(line), stream_bytes=len(line))

    def put_terminal(self, id: str, line: bytes) -> None:
        """Queue a request's last line. It counts towards no limit.

        Args:
            id: The request.
            line: The terminal.
        """
        self._put(_Line(line, id))

    def put_reply(self, line: bytes) -> None:
        """Queue a reply of the reader itself; `wait_for_reply_capacity` keeps replies bounded."""
        self._put(_Line(line), reply_bytes=len(line))

    def wait_for_reply_capacity(self) -> None:
        """Make the reader wait while its replies exceed their limit."""
        with self._lock:
            self._written.wait_for(lambda: self._reply_bytes < limits.REPLY_BYTES or self._broken)

    @property
    def is_full(self) -> bool:
        """Return whether the engine must pause."""
        return self._stream_bytes > PAUSE_THRESHOLD_BYTES

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of output that wait for the host to read."""
        return self._stream_bytes + self._reply_bytes

    def close(self) -> None:
        """Drop all later output: the last line is queued."""
        with self._lock:
            self._closed = True
            self._work.notify()

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until all output is written, and return False if the host has closed its end.

        Args:
            seconds: The longest wait; None for no limit.
        """
        with self._lock:
            self._written.wait_for(lambda: self._broken or not (self._queue or self._writing), seconds)
            return not self._broken

    def run(self, on_drained: Callable[[], None], on_broken: Callable[[], None]) -> None:
        """Run the writer's thread, until the queue is closed and all is written or the host has closed its end.

        Args:
            on_drained: Called when the engine may step again.
            on_broken: Called when the host has closed its end; nothing is written any more.
        """
        while batch := self._take():
            items = _merge(batch.items) if batch.stream_bytes > MERGE_THRESHOLD_BYTES else batch.items
            lines = [encode_tokens(item) if isinstance(item, Token) else item.data for item in items]
            try:
                self._write(b"".join(lines))
            except OSError:
                self._discard_all()
                on_broken()
                return
            if self._release_capacity(batch):
                on_drained()

    def _put(self, item: Token | _Line, *, stream_bytes: int = 0, reply_bytes: int = 0) -> None:
        with self._lock:
            if self._closed:
                return
            self._queue.append(item)
            self._stream_bytes += stream_bytes
            self._reply_bytes += reply_bytes
            if self._writer_idle:
                self._writer_idle = False
                self._work.notify()

    def _take(self) -> _Batch | None:
        """Wait for output, and take all of it. Return None if no more can follow."""
        with self._lock:
            while not self._queue:
                if self._closed:
                    return None
                self._writer_idle = True
                self._work.wait()
            self._writing = True
            items, self._queue = self._queue, []
            return _Batch(items, self._stream_bytes, self._reply_bytes)

    def _release_capacity(self, batch: _Batch) -> bool:
        """Release the capacity of written output, and return whether the engine may step again."""
        with self._lock:
            was_full = self.is_full
            self._stream_bytes -= batch.stream_bytes
            self._reply_bytes -= batch.reply_bytes
            self._writing = False
            self._written.notify_all()
            return was_full and not self.is_full

    def _discard_all(self) -> None:
        with self._lock:
            self._closed = self._broken = True
            self._queue.clear()
            self._stream_bytes = self._reply_bytes = 0
            self._written.notify_all()


def _merge(items: Iterable[Token | _Line]) -> list[Token | _Line]:
    """Return the items with the tokens of each choice and channel merged as far as their order allows."""
    merged: list[list[Token] | _Line] = []
    growing: dict[str, dict[int, list[Token]]] = {}
    for item in items:
        if isinstance(item, _Line):
            merged.append(item)
            growing.pop(item.id or "", None)
            continue
        of_request = growing.get(item.id)
        if of_request is None:
            of_request = growing[item.id] = {}
        run = of_request.get(item.choice)
        if run is not None and run[0].channel == item.channel and run[0].call == item.call:
            run.append(item)
        else:
            of_request[item.choice] = run = [item]
            merged.append(run)
    return [item if isinstance(item, _Line) else _join(item) for item in merged]


def _join(run: list[Token]) -> Token:
    logprobs = [token.logprobs for token in run if token.logprobs]  # an event with text alone has no log-probabilities
    return replace(
        run[0],
        token="".join([token.token for token in run]),
        token_ids=list(chain.from_iterable([token.token_ids for token in run])),
        logprobs=list(chain.from_iterable(logprobs)) or None,
    )
