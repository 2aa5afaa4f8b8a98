"""Workers that are broken on purpose, in one way each: `python mutants.py NAME` runs one.

Each is the mock worker with one thing replaced. What must catch it stands beside it.
"""

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lmwire_protocol import Command, Load, RequestError, commands, decoding, encoding, events, framing, limits
from lmwire_worker import outbox, process, registry, requests, scheduler, session, watcher
from lmwire_worker.__main__ import main
from lmwire_worker.bridge import _Voice as BridgeVoice
from lmwire_worker.mock.lane import MockLane
from lmwire_worker.outbox import Outbox
from lmwire_worker.pipes import Pipes
from lmwire_worker.registry import Registry


@dataclass(frozen=True)
class Mutant:
    """One broken worker.

    Args:
        breaks: what the report must name as broken.
        caught_by: the transcript that is played.
        mutate: replaces the one thing.
    """

    breaks: str
    caught_by: str
    mutate: Callable[[], None]


MUTANTS: dict[str, Mutant] = {}


def mutant(breaks: str, caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enters a mutation under its function's name."""

    def enter(mutate: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[mutate.__name__] = Mutant(breaks, caught_by, mutate)
        return mutate

    return enter


def every(count: int, function: Callable[..., Any], instead: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but every so many calls something else."""
    calls = itertools.count(1)

    def called(*arguments: Any, **options: Any) -> Any:
        return (function if next(calls) % count else instead)(*arguments, **options)

    return called


# Terminals.


@mutant("T-1", "t-1-one-terminal")
def drops_a_terminal() -> None:
    Outbox.put_terminal = every(7, Outbox.put_terminal, lambda self, id, line: None)


@mutant("T-1", "t-1-one-terminal")
def doubles_a_terminal() -> None:
    put = Outbox.put_terminal
    Outbox.put_terminal = every(7, put, lambda *arguments: [put(*arguments), put(*arguments)])


@mutant("T-1", "t-1-one-terminal")
def drops_a_refusal() -> None:
    Registry.refuse = every(5, Registry.refuse, lambda *arguments, **options: None)


@mutant("T-1", "generate")
def says_more_after_the_terminal() -> None:
    put = Outbox.put_terminal

    def put_and_go_on(self: Outbox, id: str, line: bytes) -> None:
        put(self, id, line)
        self.put_stream(encoding.encode_event(events.Token(id=id, token="!", token_ids=[])))

    Outbox.put_terminal = put_and_go_on


@mutant("T-1", "generate")
def speaks_of_an_unknown_id() -> None:
    put = Outbox.put_tokens
    Outbox.put_tokens = lambda self, id, *tokens: put(self, id + "?", *tokens)


@mutant("T-2", "model")
def ends_a_request_with_an_error_without_id() -> None:
    encode = registry.error_event
    registry.error_event = lambda error, *, id=None, bad_id=None: encode(
        error, id=None if error.code == "not_loaded" else id, bad_id=bad_id
    )


# Tokens.


@mutant("K-2", "k-1-same-answer")
def merges_tokens_across_ids() -> None:
    put = Outbox.put_tokens

    def merge(self: Outbox, id: str, text: str, token_ids: Sequence[int], *more: Any) -> None:
        with self._lock:
            last = self._queue[-1] if self._queue else None
            if isinstance(last, outbox._Tokens):
                last.texts.append(text)
                last.token_ids += token_ids
                return
        put(self, id, text, token_ids, *more)

    Outbox.put_tokens = merge


@mutant("W-2", "w-1-unread")
def loses_text_when_it_merges() -> None:
    calls = itertools.count(1)

    class Silent(list[str]):
        def append(self, text: str) -> None:
            if next(calls) % 7:  # not all, which two answers could lose alike
                super().append(text)

    create = outbox._Tokens.__init__

    def create_silent(self: Any, *arguments: Any) -> None:
        create(self, *arguments)
        self.texts = Silent(self.texts)

    outbox._Tokens.__init__ = create_silent
    outbox.HIGH_WATER_BYTES = 0
    write = Pipes.write
    Pipes.write = lambda self, data: time.sleep(0.01) or write(self, data)  # so that something waits to be merged


@mutant("#the-generation-fields", "generate")
def tells_another_seed() -> None:
    requests._seed = lambda command: 5


@mutant("#commands", "ping-and-stats")
def streams_what_nobody_asked_for() -> None:
    reply = Registry.reply

    def reply_with_progress(self: Registry, id: str, line: bytes) -> None:
        self._outbox.put_stream(encoding.encode_event(events.Progress(id=id, stage="read", current=0, unit="steps")))
        reply(self, id, line)

    Registry.reply = reply_with_progress


@mutant("#progress", "k-1-same-answer")
def floods_with_progress() -> None:
    send = Registry.emit

    def emit(self: Registry, outcomes: Any) -> None:
        for request, outcome in outcomes:
            line = encoding.encode_event(
                events.Progress(id=request.id, stage="prefill", current=1, total=1, unit="tokens")
            )
            self.progress(request, line)
            send(self, [(request, outcome)])

    Registry.emit = emit


# Lines.


@mutant("F-13", "f-13-separators")
def escapes_no_separators() -> None:
    encoding.escape_separators = lambda line: line


@mutant("F-12", "f-12-short-lines")
def writes_overlong_lines() -> None:
    encoding.clip = lambda text, limit=0: text
    encoding._FIELD_CHARACTERS = 10**9


@mutant("F-14", "f-12-short-lines")
def writes_overlong_sentences() -> None:
    encoding.clip = lambda text, limit=0: text[:5000]


@mutant("F-19", "f-19-silence")
def says_something_before_it_is_asked() -> None:
    os.write(1, b'{"event":"ready"}\n')


@mutant("F-18", "hello")
def prints_among_the_lines() -> None:
    put = Outbox.put_reply
    Outbox.put_reply = lambda self, line: [put(self, b"INFO: replying\n"), put(self, line)][1]


@mutant("F-11", "hello")
def leaves_half_a_line() -> None:
    seal = Outbox.seal

    def seal_after_half_a_line(self: Outbox) -> None:
        self.put_reply(b'{"event":"do')
        seal(self)

    Outbox.seal = seal_after_half_a_line


@mutant("F-3", "f-3-longest-line")
def takes_lines_of_any_length() -> None:
    limits.LINE_IN_BYTES = 1 << 40


@mutant("F-3", "f-3-longest-line")
def counts_the_carriage_return() -> None:
    def append(self: Any, data: bytes) -> None:
        self._size += len(data)
        if data and not self._skipping:
            self._parts.append(data)
            if self._size > self._limit:
                self._parts = [b"".join(self._parts)[:1024]]
                self._skipping = True

    framing.LineSplitter._append = append


@mutant("F-6", "f-6-null")
def takes_null_for_a_value() -> None:
    decoding.without_nulls = lambda value: value


@mutant("F-1", "f-1-lines")
def forgets_the_last_line_without_newline() -> None:
    def read(self: process.Process) -> None:
        lines = framing.LineSplitter(limits.LINE_IN_BYTES)
        while data := self._io.read(1 << 16):
            for line in lines.feed(data):
                self._handle(line)
        self._registry.drain()

    process.Process._read = read


@mutant("F-10", "commands-fields")
def accepts_unknown_fields() -> None:
    decode = session.decode_command

    def decode_known(fields: dict[str, Any]) -> Command:
        command = commands.COMMANDS.get(str(fields.get("cmd")))
        known = ("id", "cmd", *(command.__struct_fields__ if command else ()))
        return decode({name: value for name, value in fields.items() if name in known})

    session.decode_command = decode_known


@mutant("F-10", "f-10-refusals")
def says_invalid_request_of_everything() -> None:
    encode = registry.error_event

    def invalid(error: RequestError, **ids: Any) -> Any:
        return encode(RequestError("invalid_request", error.message, field=error.field), **ids)

    registry.error_event = invalid


# Ids and order.


@mutant("I-3", "i-3-duplicate")
def serves_an_id_that_is_in_flight() -> None:
    Registry._check_free = lambda self, id: None


@mutant("I-4", "i-1-ids")
def counts_an_ids_characters() -> None:
    session.usable_id = lambda value: isinstance(value, str) and 0 < len(value) <= limits.ID_BYTES


@mutant("I-5", "i-5-unreadable")
def recovers_no_id() -> None:
    session.recover_id = lambda line: None


@mutant("S-2", "s-1-version-1")
def makes_up_an_id() -> None:
    serve = session.Session.serve
    session.Session.serve = lambda self, fields, line_bytes: serve(self, {"id": "made up", **fields}, line_bytes)


@mutant("O-2", "c-2-same-write")
def answers_a_cancel_after_its_terminals() -> None:
    def cancel(self: Registry, id: str, target: str | None) -> None:
        with self._lock:
            found = [request for request in self._live.values() if target is None or request.id == target]
            for request in found:
                self._end(request, request.cancellation())
            self._outbox.put_reply(encoding.encode_event(events.CancelDone(id=id, matched=len(found))))

    Registry.cancel = cancel


@mutant("O-2", "o-2-quits-last")
def answers_quit_at_once() -> None:
    def quit_at_once(self: Registry, request: Any, *, drain: bool) -> None:
        self._outbox.put_reply(encoding.encode_event(events.QuitDone(id=request.id)))
        self.drain()

    Registry.quit = quit_at_once


@mutant("C-1", "c-1-nothing-to-cancel")
def finds_what_is_not_there() -> None:
    session.Session._dispatch = _answer_cancels(session.Session._dispatch)


def _answer_cancels(dispatch: Callable[..., None]) -> Callable[..., None]:
    def answer(self: session.Session, id: str, command: Command, size: int) -> None:
        if isinstance(command, commands.Cancel):
            self._registry.reply(id, encoding.encode_event(events.CancelDone(id=id, matched=1)))
        else:
            dispatch(self, id, command, size)

    return answer


@mutant("C-2", "c-2-same-write")
def cancels_nothing() -> None:
    def cancel(self: Registry, id: str, target: str | None) -> None:
        self.reply(id, encoding.encode_event(events.CancelDone(id=id, matched=0)))

    Registry.cancel = cancel


@mutant("L-2", "l-2-barriers")
def lets_later_requests_pass_a_barrier() -> None:
    def start_waiting(self: scheduler.Scheduler) -> None:
        waiting, self._waiting = (
            sorted(self._waiting, key=lambda request: request.command.barrier),
            type(self._waiting)(),
        )
        for request in waiting:
            if request.command.barrier and self._active:
                self._waiting.append(request)
            elif self._registry.start(request):
                self._begin(request)
        self._room_made = False

    scheduler.Scheduler._start_waiting = start_waiting


# Loading, limits, flow.


@mutant("B-4", "b-4-failed-load")
def does_not_say_what_is_loaded() -> None:
    registry.Load = type("Other", (Load,), {})


@mutant("B-2", "b-4-failed-load")
def drops_the_model_before_it_looks_for_the_next() -> None:
    begin = scheduler.Scheduler._load

    def drop_and_load(self: scheduler.Scheduler, request: Any, load: Load) -> Any:
        self._drop_lane()
        return begin(self, request, load)

    scheduler.Scheduler._load = drop_and_load


@mutant("W-6", "w-6-busy")
def takes_any_number_of_requests() -> None:
    limits.REQUESTS = 10**9


@mutant("W-1", "w-1-unread")
def reads_only_while_the_host_reads() -> None:
    limits.REPLY_BYTES = 1


@mutant("L-1", "l-1-out-of-band")
def answers_pings_in_their_turn() -> None:
    handle = process.Process._handle

    def wait_and_handle(self: process.Process, line: framing.Line) -> None:
        if b'"ping"' in line.data:
            with self._registry._lock:
                self._registry._news.wait_for(lambda: not self._registry._live)
        handle(self, line)

    process.Process._handle = wait_and_handle
    end = Registry._end

    def end_and_tell(self: Registry, request: Any, outcome: Any) -> None:
        end(self, request, outcome)
        self._news.notify_all()

    Registry._end = end_and_tell


# Ends.


@mutant("E-1", "e-1-drain")
def serves_requests_while_it_drains() -> None:
    def quit_later(self: Registry, request: Any, *, drain: bool) -> None:
        with self._lock:
            self._quits[request.id] = request
            if not drain:
                self._drain()
                self._cancel(list(self._live.values()))

    Registry.quit = quit_later


@mutant("E-2", "e-2-end-of-stdin")
def cancels_at_the_end_of_stdin() -> None:
    drain = Registry.drain
    Registry.drain = lambda self: [drain(self), self.cancel_where(lambda request: True)][0]


@mutant("E-3", "e-3-read-late")
def does_not_wait_for_a_late_reader() -> None:
    flush = Outbox.flush
    Outbox.flush = lambda self, seconds=None: flush(self, 0.0)


@mutant("E-4", "e-4-sigint")
def dies_of_an_interrupt() -> None:
    take = watcher.Watcher.take_signals

    def take_signals(self: watcher.Watcher, *, interactive: bool) -> None:
        take(self, interactive=interactive)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    watcher.Watcher.take_signals = take_signals


@mutant("E-4", "e-4-sigterm")
def dies_of_a_termination() -> None:
    take = watcher.Watcher.take_signals

    def take_signals(self: watcher.Watcher, *, interactive: bool) -> None:
        take(self, interactive=interactive)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    watcher.Watcher.take_signals = take_signals


@mutant("E-5", "e-5-host-gone")
def leaves_with_another_code_when_the_host_is_gone() -> None:
    watcher.EXIT_HOST_GONE = 70


@mutant("#hello", "hello-no-common-version")
def leaves_in_peace_when_no_version_is_common() -> None:
    process.EXIT_PROTOCOL = 0


@mutant("#how-a-worker-ends", "f-2-blank-lines")
def leaves_with_a_code_of_its_own() -> None:
    leave = os._exit
    os._exit = lambda code: leave(3)


# The bridge.


@mutant("G-2", "g-1-bridge")
def answers_a_bridge_in_any_order() -> None:
    BridgeVoice.serial = False
    step = MockLane.step
    MockLane.step = lambda self: time.sleep(0.1) or step(self)  # long enough for what comes behind to come before


@mutant("S-1", "s-3-before-any-object")
def knows_no_bridge() -> None:
    process.Process._bridge = process.Process._version_1  # type: ignore[method-assign]


def run(name: str) -> None:
    """Runs a mutant as a worker; does not return."""
    MUTANTS[name].mutate()
    main(["--mock"])


if __name__ == "__main__":
    run(sys.argv[1])
