"""The bounded queue of output, and the thread that writes it.

Nothing here ever makes the reader wait for tokens: terminals and replies have room of their own, tokens merge
without loss when the host reads slowly, and past the hard mark the engine makes no step.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from lmwire_protocol import encode_tokens, limits
from lmwire_protocol.events import Channel, Logprob

HIGH_WATER_BYTES = 256 * 1024
"""Waiting stream output (tokens and progress) from which on tokens of one request merge."""

HARD_BYTES = 1024 * 1024
"""Waiting stream output from which on the engine makes no step."""

_WRITE_BYTES = 64 * 1024
_TOKEN_BYTES = 8
_LINE_BYTES = 64
_LOGPROB_BYTES = 64


class _Tokens(Struct, gc=False):
    """Tokens of one choice and channel that wait to be written as one event."""

    reply: ClassVar[int] = 0

    id: str
    text: str | list[str]
    token_ids: list[int]
    choice: int
    channel: Channel
    logprobs: list[Logprob] | None
    size: int

    def add(self, text: str, token_ids: list[int], logprobs: list[Logprob] | None, size: int) -> None:
        """Merges what comes next. Only now lists are copied: hardly any tokens merge."""
        if isinstance(self.text, str):
            self.text = [self.text]
            self.token_ids = self.token_ids.copy()
            self.logprobs = self.logprobs and self.logprobs.copy()
        self.text.append(text)
        self.token_ids += token_ids
        if logprobs:
            self.logprobs = self.logprobs or []  # text alone comes without
            self.logprobs += logprobs
        self.size += size

    def lines(self) -> bytes:
        text = self.text if isinstance(self.text, str) else "".join(self.text)
        return encode_tokens(self.id, text, self.token_ids, self.choice, self.channel, self.logprobs)


class _Line:
    """A finished line. `reply` lines count against the reader's reserve, `stream` lines as tokens do."""

    __slots__ = ("data", "reply", "size")

    def __init__(self, data: bytes, *, stream: bool = False, reply: bool = False) -> None:
        self.data = data
        self.size = len(data) if stream else 0
        self.reply = len(data) if reply else 0

    def lines(self) -> bytes:
        return self.data


class Outbox:
    """Takes output from every thread and writes it in order.

    Args:
        write: takes finished lines; it may wait, and raises OSError when the host is gone.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # for the writer
        self._settled = threading.Condition(self._lock)  # for those who wait for the writer
        self._queue: deque[_Tokens | _Line] = deque()
        self._open: dict[str, dict[int, _Tokens]] = {}  # by id and choice: tokens in the queue that may still grow
        self._stream_bytes = 0
        self._reply_bytes = 0
        self._hungry = False  # the writer waits for work; to notify it otherwise costs more than to look
        self._writing = False
        self._sealed = False
        self._dead = False

    def put_tokens(
        self,
        id: str,
        text: str,
        token_ids: list[int],
        choice: int = 0,
        channel: Channel = "content",
        logprobs: list[Logprob] | None = None,
    ) -> None:
        """Queues generated tokens, merged with waiting ones of the same choice and channel when the host is slow."""
        size = len(text) + _TOKEN_BYTES * len(token_ids)
        if logprobs:
            size += sum(_LOGPROB_BYTES * (1 + len(logprob.top)) for logprob in logprobs)
        with self._lock:
            slots = self._open.get(id)
            if slots is None:
                slots = self._open[id] = {}
            elif self._stream_bytes > HIGH_WATER_BYTES:
                waiting = slots.get(choice)
                if waiting is not None and waiting.channel == channel:
                    waiting.add(text, token_ids, logprobs, size)
                    self._stream_bytes += size
                    return
            slots[choice] = tokens = _Tokens(id, text, token_ids, choice, channel, logprobs, size + _LINE_BYTES)
            self._append(tokens)

    def put_call(self, id: str, choice: int, line: bytes) -> None:
        """Queues a tool call's event, which tokens before it and tokens behind it do not merge across."""
        with self._lock:
            self._open.get(id, {}).pop(choice, None)
            self._append(_Line(line, stream=True))

    def put_stream(self, line: bytes) -> None:
        """Queues a line that counts as a token does: progress, and the bridge's tokens, which never merge."""
        with self._lock:
            self._append(_Line(line, stream=True))

    def put_terminal(self, id: str, line: bytes) -> None:
        """Queues a request's last line, in the room that the request reserved."""
        with self._lock:
            self._open.pop(id, None)
            self._append(_Line(line))

    def put_reply(self, line: bytes) -> None:
        """Queues an answer of the reader itself; `wait_for_reply_room` keeps these bounded."""
        with self._lock:
            self._append(_Line(line, reply=True))

    def wait_for_reply_room(self) -> None:
        """Holds the reader up while the replies that it has caused fill their reserve."""
        with self._lock:
            self._settled.wait_for(lambda: self._reply_bytes < limits.REPLY_BYTES or self._dead)

    @property
    def full(self) -> bool:
        """Whether the engine must not step."""
        return self._stream_bytes > HARD_BYTES

    @property
    def waiting_bytes(self) -> int:
        """Output that waits for the host to read."""
        return self._stream_bytes + self._reply_bytes

    def seal(self) -> None:
        """Drops whatever is put from now on: the last line has been queued."""
        with self._lock:
            self._sealed = True

    def flush(self, seconds: float | None = None) -> bool:
        """Waits until everything is written, the host is gone, or the time is over. False when the host is gone."""
        with self._lock:
            self._settled.wait_for(lambda: self._dead or not (self._queue or self._writing), seconds)
            return not self._dead

    def run(self, drained: Callable[[], None], broken: Callable[[], None]) -> None:
        """The writer's thread.

        Args:
            drained: called when the engine may step again.
            broken: called when the host has closed its end; nothing is written any more.
        """
        while True:
            batch = self._take()
            try:
                self._write(b"".join([item.lines() for item in batch]))
            except OSError:
                self._give_up()
                broken()
                return
            if self._settle(batch):
                drained()

    def _append(self, item: _Tokens | _Line) -> None:
        if self._sealed:
            return
        self._queue.append(item)
        self._stream_bytes += item.size
        self._reply_bytes += item.reply
        if self._hungry:
            self._hungry = False
            self._work.notify()

    def _take(self) -> list[_Tokens | _Line]:
        """The next lines, about as many as one write takes."""
        with self._lock:
            while not self._queue:
                self._hungry = True
                self._work.wait()
            self._writing = True
            batch: list[_Tokens | _Line] = []
            size = 0
            while self._queue and size < _WRITE_BYTES:
                item = self._queue.popleft()
                if isinstance(item, _Tokens):
                    slots = self._open.get(item.id)
                    if slots and slots.get(item.choice) is item:
                        del slots[item.choice]
                    size += item.size
                else:
                    size += len(item.data)
                batch.append(item)
            return batch

    def _settle(self, batch: list[_Tokens | _Line]) -> bool:
        """Gives the room of what was written back. Whether that lets the engine step again."""
        with self._lock:
            was_full = self.full
            for item in batch:
                self._stream_bytes -= item.size
                self._reply_bytes -= item.reply
            self._writing = False
            self._settled.notify_all()
            return was_full and not self.full

    def _give_up(self) -> None:
        with self._lock:
            self._sealed = self._dead = True
            self._queue.clear()
            self._open.clear()
            self._stream_bytes = self._reply_bytes = 0
            self._settled.notify_all()
