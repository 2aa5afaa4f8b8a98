"""The bounded queue of output, and the thread that writes it.

Nothing here ever makes the reader wait for tokens: terminals and replies have room of their own, tokens merge
without loss when the host reads slowly, and past the hard mark the engine makes no step.
"""

import threading
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from lmwire_protocol import encode_tokens, limits
from lmwire_protocol.events import Token

MERGE_THRESHOLD_BYTES = 512 * 1024
"""Waiting stream output (tokens and progress) from which on tokens of one request merge when they are written."""

PAUSE_THRESHOLD_BYTES = 1024 * 1024
"""Waiting stream output from which on the engine makes no step."""

_TOKEN_BYTES = 8
_LINE_BYTES = 64
_LOGPROB_BYTES = 64


class _Line(NamedTuple):
    """A finished line."""

    data: bytes
    id: str | None = None
    """A request whose tokens do not merge across it."""


class _Batch(NamedTuple):
    """All that waited, and what it counted as."""

    items: list[Token | _Line]
    stream_bytes: int
    reply_bytes: int


class OutputQueue:
    """Takes output from every thread and writes it in order.

    Args:
        write: takes finished lines; it may wait, and raises OSError when the host is gone.
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
        """Queues generated tokens."""
        size = _LINE_BYTES + len(token.token) + _TOKEN_BYTES * len(token.token_ids)
        if token.logprobs:
            size += sum(_LOGPROB_BYTES * (1 + len(logprob.top)) for logprob in token.logprobs)
        self._put(token, stream_bytes=size)

    def put_tool_call(self, id: str, line: bytes) -> None:
        """Queues a tool call's event."""
        self._put(_Line(line, id), stream_bytes=len(line))

    def put_stream(self, line: bytes) -> None:
        """Queues a line that counts as a token does: progress, and the bridge's tokens, which never merge."""
        self._put(_Line(line), stream_bytes=len(line))

    def put_terminal(self, id: str, line: bytes) -> None:
        """Queues a request's last line, in the room that the request reserved."""
        self._put(_Line(line, id))

    def put_reply(self, line: bytes) -> None:
        """Queues an answer of the reader itself; `wait_for_reply_room` keeps these bounded."""
        self._put(_Line(line), reply_bytes=len(line))

    def wait_for_reply_capacity(self) -> None:
        """Holds the reader up while the replies that it has caused fill their reserve."""
        with self._lock:
            self._written.wait_for(lambda: self._reply_bytes < limits.REPLY_BYTES or self._broken)

    @property
    def is_full(self) -> bool:
        """Whether the engine must not step."""
        return self._stream_bytes > PAUSE_THRESHOLD_BYTES

    @property
    def waiting_bytes(self) -> int:
        """Output that waits for the host to read."""
        return self._stream_bytes + self._reply_bytes

    def close(self) -> None:
        """Drops whatever is put from now on: the last line has been queued."""
        with self._lock:
            self._closed = True

    def flush(self, seconds: float | None = None) -> bool:
        """Waits until everything is written, the host is gone, or the time is over. False when the host is gone."""
        with self._lock:
            self._written.wait_for(lambda: self._broken or not (self._queue or self._writing), seconds)
            return not self._broken

    def run(self, on_drained: Callable[[], None], on_broken: Callable[[], None]) -> None:
        """The writer's thread.

        Args:
            on_drained: Called when the engine may step again.
            on_broken: Called when the host has closed its end; nothing is written any more.
        """
        while True:
            batch = self._take()
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

    def _take(self) -> _Batch:
        """Waits for output, and takes all of it."""
        with self._lock:
            while not self._queue:
                self._writer_idle = True
                self._work.wait()
            self._writing = True
            items, self._queue = self._queue, []
            return _Batch(items, self._stream_bytes, self._reply_bytes)

    def _release_capacity(self, batch: _Batch) -> bool:
        """Gives the room of what was written back. Whether that lets the engine step again."""
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
    """The same, with the tokens of each choice and channel of a request in as few events as their order allows."""
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
    logprobs = [token.logprobs for token in run if token.logprobs]  # text alone comes without
    return replace(
        run[0],
        token="".join([token.token for token in run]),
        token_ids=list(chain.from_iterable([token.token_ids for token in run])),
        logprobs=list(chain.from_iterable(logprobs)) or None,
    )
