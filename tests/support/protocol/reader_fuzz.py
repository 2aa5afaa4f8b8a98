"""A fuzz of the reader, in one process and at full speed: `python reader_fuzz.py SEED LINES`.

Every line that is not blank must be answered exactly once, under its own id if that can be read: by a reply, or by
a request that is accepted and later ends. Python's own JSON reader determines a line's id.
"""

import json
import re
import sys

import msgspec

from lmwire_protocol import Line, LineSplitter, RequestError, decode_object, limits
from lmwire_worker.mock import MockModelLoader
from lmwire_worker.scheduling.scheduler import Scheduler
from lmwire_worker.session.output_queue import OutputQueue
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.request_state import Request
from lmwire_worker.session.v1 import Session
from support.protocol.mutated_lines import Mutator
from support.runners.stepped_engine import Bystander, Silence

LONGEST = 300
"""Length of the longest accepted line, in bytes; short, so that many lines are over-long."""

LINES_AT_ONCE = 500
IN_FLIGHT = 6
"""Number of accepted requests that may stay in flight, so that lines meet ids that are taken."""

UNREADABLE = ("parse_error", "line_too_long")


class Answer(msgspec.Struct):
    """The members of an event that are checked."""

    event: str
    id: str | None = None
    bad_id: str | None = None
    code: str | None = None


_read_answer = msgspec.json.Decoder(Answer).decode


class Replies(OutputQueue):
    """An output queue that keeps the lines for the test."""

    def __init__(self) -> None:
        super().__init__(lambda data: None)
        self.lines: list[bytes] = []

    def put_terminal(self, id: str, line: bytes) -> None:
        self.lines.append(line)

    def put_reply(self, line: bytes) -> None:
        self.lines.append(line)

    def take(self) -> list[Answer]:
        """Return the answers written since the last call."""
        lines, self.lines = self.lines, []
        return [_read_answer(line) for line in lines]


class Reader:
    """The work of a worker's reader thread, without the thread. No engine runs, so requests stay queued."""

    def __init__(self) -> None:
        self._replies = Replies()
        self._registry = RequestRegistry(self._replies)
        engine, log = MockModelLoader(), Silence()
        scheduler = Scheduler(self._registry, self._replies, engine, log)
        self._session = Session(
            self._registry, self._replies, scheduler, Bystander(), engine.names, (), log, self._registry.drain
        )
        self._in_flight: dict[str, Request] = {}
        self._quits: list[str | None] = []

    @property
    def ending(self) -> bool:
        """Return whether a quit, or a hello without a common version, was read."""
        return self._registry.draining

    def answer(self, line: Line) -> None:
        """Serve one line, and check that it was answered."""
        try:
            fields = decode_object(line)
        except RequestError as error:
            self._session.refuse(line, error)
        else:
            self._session.serve(fields, len(line.data))
        self._check(line, self._replies.take(), self._registry.take_new(block=False) or [])
        if len(self._in_flight) > IN_FLIGHT:
            self.end_requests()

    def end_requests(self) -> None:
        """End the requests in flight, and check that each is answered."""
        for request in self._in_flight.values():
            self._registry.end(request, request.cancellation())
        assert [answer.id for answer in self._replies.take()] == list(self._in_flight)
        self._in_flight.clear()

    def end(self) -> None:
        """End the session, and check that only the answers to quits remain."""
        self.end_requests()
        self._registry.close()
        assert [answer.id for answer in self._replies.take()] == self._quits

    def _check(self, line: Line, answers: list[Answer], arrived: list[Request]) -> None:
        if arrived:
            (request,) = arrived
            assert answers == []
            assert request.id == id_of_object(line)
            assert request.id not in self._in_flight
            self._in_flight[request.id] = request
            return
        if not answers or answers[0].id in self._in_flight:
            assert self.ending
            self._quits.append(id_of_object(line))
            self._forget(answers)
            return
        first, *ended = answers
        id = id_at_the_start(line) if first.code in UNREADABLE else id_of_object(line)
        taken = first.bad_id is not None
        assert (first.bad_id if taken else first.id) == id
        assert taken == (id in self._in_flight)
        self._forget(ended)

    def _forget(self, ended: list[Answer]) -> None:
        """Remove the requests that a cancel or a quit ended."""
        for answer in ended:
            del self._in_flight[answer.id or ""]


def id_of_object(line: Line) -> str | None:
    """Return the id of a line that is a JSON object, or None if it is not usable."""
    return _usable(json.loads(line.data.decode()).get("id"))


_START = re.compile(rb'\s*\{\s*"id"\s*:\s*"')
_scan = json.JSONDecoder().raw_decode


def id_at_the_start(line: Line) -> str | None:
    """Return the id of a line that starts with one, whatever follows; None if it is not usable."""
    if (start := _START.match(line.data)) is None:
        return None
    try:
        end = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL).match(line.data, start.end())
        return _usable(_scan(line.data[start.end() - 1 : end.end()].decode())[0]) if end else None
    except ValueError:
        return None


def _usable(id: object) -> str | None:
    try:
        return id if isinstance(id, str) and 1 <= len(id.encode()) <= limits.ID_BYTES else None
    except UnicodeEncodeError:
        return None


def fuzz(seed: int, count: int) -> None:
    """Serve `count` lines generated from `seed`, in chunks that end anywhere.

    Raises:
        AssertionError: a line was not answered as it must be; the message has the seed and the line.
    """
    mutator, splitter = Mutator(seed), LineSplitter(LONGEST)
    reader, answered, expected, rest = Reader(), 0, 0, b""
    for number in range(count // LINES_AT_ONCE):
        lines = [mutator.line() for _ in range(LINES_AT_ONCE)]
        expected += sum(bool(line.strip(b" \t\r")) for line in lines)
        stream = rest + b"\n".join(lines) + b"\n"
        cut = len(stream) - number % 97
        rest = stream[cut:]
        for line in splitter.feed(stream[:cut]):
            answered += 1
            try:
                reader.answer(line)
            except Exception as error:
                raise AssertionError(f"seed {seed}, line {line!r}: {error!r}") from error
            if reader.ending:
                reader.end()
                reader = Reader()
    assert answered + sum(1 for _ in splitter.feed(rest)) == expected, f"seed {seed}: lines were lost"


if __name__ == "__main__":
    fuzz(int(sys.argv[1]), int(sys.argv[2]))
