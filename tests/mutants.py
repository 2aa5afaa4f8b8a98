"""Workers that are broken on purpose, in one way each: `python mutants.py NAME` runs one.

Each is the mock worker with one thing replaced. What must catch it stands beside it.
"""

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lmwire_protocol import Command, Load, RequestError, commands, decoding, encoding, events, framing, limits
from lmwire_worker import outbox, process, registry, requests, scheduler, session, watcher
from lmwire_worker.__main__ import main
from lmwire_worker.bridge import _Voice as BridgeVoice
from lmwire_worker.lane import CallPiece, Piece
from lmwire_worker.mock import draft
from lmwire_worker.mock.cache import PromptCache
from lmwire_worker.mock.lane import MockLane
from lmwire_worker.outbox import Outbox
from lmwire_worker.pipes import Pipes
from lmwire_worker.registry import Registry
from lmwire_worker.text import truncation


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

    @property
    def calls(self) -> bool:
        """Whether it is a mock that calls tools."""
        return self.caught_by in CALLING


CALLING = ("p-1-required", "p-2-no-calls")
"""The transcripts in which it takes calls to catch a mutant."""
CALLS = ("--scenario", str(Path(__file__).with_name("calling.json")))
"""The options of a mock that calls a tool."""
MUTANTS: dict[str, Mutant] = {}


def mutant(breaks: str, caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enters a mutation under its function's name."""

    def enter(mutate: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[mutate.__name__] = Mutant(breaks, caught_by, mutate)
        return mutate

    return enter


def replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Puts a function in another's place, whatever that one takes."""
    setattr(owner, name, function)


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
    replace(Outbox, "put_tokens", lambda self, id, *tokens: put(self, id + "?", *tokens))


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

    def merge(self: Outbox, id: str, text: str, token_ids: list[int], *more: Any) -> None:
        with self._lock:
            last = self._queue[-1] if self._queue else None
            if isinstance(last, outbox._Tokens):
                last.add(text, token_ids, None, len(text))
                return
        put(self, id, text, token_ids, *more)

    replace(Outbox, "put_tokens", merge)


@mutant("W-2", "w-1-unread")
def loses_text_when_it_merges() -> None:
    calls = itertools.count(1)
    add = outbox._Tokens.add

    def add_silently(self: Any, text: str, *more: Any) -> None:
        add(self, text if next(calls) % 7 else "", *more)  # not all, which two answers could lose alike

    replace(outbox._Tokens, "add", add_silently)
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


# Choices, channels, log-probabilities.


def change_pieces(change: Callable[[Piece], object]) -> None:
    """Has every piece of text changed on its way out."""
    show = session._Voice.tokens

    def show_changed(self: Any, outbox: Outbox, request: Any, piece: Piece) -> None:
        change(piece)
        show(self, outbox, request, piece)

    session._Voice.tokens = show_changed


@mutant("N-3", "n-3-choices")
def mixes_the_tokens_of_a_choice() -> None:
    put, end = Outbox.put_tokens, Outbox.put_terminal
    held: dict[tuple[str, int], tuple[Any, ...]] = {}
    calls = itertools.count(1)

    def put_late(self: Outbox, id: str, text: str, token_ids: list[int], choice: int = 0, *more: Any) -> None:
        late = held.pop((id, choice), None)
        if late is None and next(calls) % 5 == 0:
            held[id, choice] = (id, text, token_ids, choice, *more)
            return
        put(self, id, text, token_ids, choice, *more)
        if late:
            put(self, *late)

    def end_late(self: Outbox, id: str, line: bytes) -> None:
        for name in [name for name in held if name[0] == id]:
            put(self, *held.pop(name))
        end(self, id, line)

    replace(Outbox, "put_tokens", put_late)
    replace(Outbox, "put_terminal", end_late)


@mutant("N-3", "n-3-choices")
def gives_the_text_of_one_choice_to_another() -> None:
    pieces = itertools.count(1)
    change_pieces(lambda piece: setattr(piece, "choice", piece.choice and next(pieces) % 2))


@mutant("N-3", "n-3-choices")
def counts_choices_from_one() -> None:
    change_pieces(lambda piece: setattr(piece, "choice", piece.choice + 1))


@mutant("N-3", "n-3-choices")
def leaves_out_how_a_choice_ended() -> None:
    change_results(lambda result: result.choices and result.choices.pop())


@mutant("#the-result", "n-3-choices")
def counts_the_tokens_of_one_choice_alone() -> None:
    def count_first(result: events.ResultDone) -> None:
        if result.choices:
            result.usage.completion_tokens = result.choices[0].completion_tokens

    change_results(count_first)


@mutant("K-2", "n-3-choices")
def counts_a_choice_short() -> None:
    def shorten(result: events.ResultDone) -> None:
        if result.choices and result.choices[1].completion_tokens:
            result.choices[1].completion_tokens -= 1
            result.usage.completion_tokens -= 1

    change_results(shorten)


def change_results(change: Callable[[events.ResultDone], object]) -> None:
    """Has the `done` of every generation changed."""
    result = requests.Request.result

    def changed(*arguments: Any) -> events.ResultDone:
        done = result(*arguments)
        change(done)
        return done

    replace(requests.Request, "result", changed)


@mutant("C-5", "c-3-choices")
def ends_one_choice_for_the_cancel_of_all() -> None:
    def forget(result: events.ResultDone) -> None:
        if result.choices and result.finish_reason == "cancelled":
            result.choices[1].finish_reason = "tool_calls"

    change_results(forget)


@mutant("#generate", "generate")
def thinks_where_there_are_no_thoughts() -> None:
    change_pieces(lambda piece: setattr(piece, "channel", "reasoning"))


@mutant("R-4", "r-1-reasoning")
def counts_no_thoughts() -> None:
    change_results(lambda result: setattr(result.usage, "reasoning_tokens", 0))


@mutant("R-1", "r-1-reasoning")
def thinks_in_any_case() -> None:
    write = draft._thought

    def think(request: Any, answer: Any, prompt: Any) -> Any:
        return prompt if isinstance(request, commands.Chat) else write(request, answer, prompt)

    draft._thought = think


@mutant("#token", "k-7-logprobs")
def loses_a_log_probability() -> None:
    pieces = itertools.count(1)
    change_pieces(lambda piece: piece.logprobs and next(pieces) % 5 == 0 and piece.logprobs.pop())


@mutant("#token", "k-7-logprobs")
def names_fewer_tokens_than_asked_for() -> None:
    change_pieces(lambda piece: [logprob.top and logprob.top.pop() for logprob in piece.logprobs or []])


@mutant("#token", "k-7-logprobs")
def names_the_least_probable_first() -> None:
    change_pieces(lambda piece: [logprob.top.reverse() for logprob in piece.logprobs or []])


@mutant("#token", "k-7-logprobs")
def sends_log_probabilities_unasked() -> None:
    def add(piece: Piece) -> None:
        piece.logprobs = piece.logprobs or [events.Logprob(token_id, "", -1.0) for token_id in piece.token_ids]

    change_pieces(add)


@mutant("K-3", "k-3-include-stop")
def leaves_out_the_stop_string_that_was_to_stay() -> None:
    change_pieces(lambda piece: piece.stop and setattr(piece, "text", piece.text.removesuffix(piece.stop)))


@mutant("#the-generation-fields", "n-4-ends")
def ends_as_soon_as_it_likes() -> None:
    plan = draft.Draft.__init__

    def plan_short(self: Any, request: Any, *arguments: Any, **options: Any) -> None:
        plan(self, msgspec.structs.replace(request, min_tokens=0, ignore_eos=False), *arguments, **options)
        self.is_cut = False
        self.count = min(self.count, 4)

    draft.Draft.__init__ = plan_short


@mutant("N-5", "n-5-timeout")
def knows_no_time_limit() -> None:
    Registry.expire = lambda self: None


@mutant("#tokenize", "tokenize")
def tells_what_was_only_to_be_counted() -> None:
    tokenize = scheduler.Scheduler._tokenize

    def tell(self: Any, request: Any, command: Any) -> Any:
        return tokenize(self, request, msgspec.structs.replace(command, count_only=False))

    scheduler.Scheduler._tokenize = tell


# Tool calls.


def change_calls(change: Callable[[CallPiece], object]) -> None:
    """Has every piece of a call changed on its way out."""
    show = session._Voice.call

    def show_changed(self: Any, outbox: Outbox, request: Any, piece: CallPiece) -> None:
        change(piece)
        show(self, outbox, request, piece)

    session._Voice.call = show_changed


@mutant("P-4", "p-1-required")
def leaves_a_call_without_an_end() -> None:
    change_calls(lambda piece: setattr(piece, "complete", None))


@mutant("P-4", "p-1-required")
def says_that_it_stopped_when_it_called() -> None:
    change_results(lambda result: setattr(result, "finish_reason", result.finish_reason.replace("tool_calls", "stop")))


@mutant("Q-1", "p-1-required")
def loses_a_piece_of_the_arguments() -> None:
    change_calls(lambda piece: setattr(piece, "arguments", piece.arguments.replace("true}", "")))


@mutant("Q-1", "p-1-required")
def counts_calls_from_one() -> None:
    change_calls(lambda piece: setattr(piece, "index", piece.index + 1))


@mutant("#tool_call", "p-1-required")
def gives_a_call_no_id() -> None:
    change_calls(lambda piece: setattr(piece, "call_id", None))


@mutant("P-1", "p-1-required")
def calls_what_was_not_named() -> None:
    change_calls(lambda piece: piece.name and setattr(piece, "name", "listen"))


@mutant("P-2", "p-2-no-calls")
def calls_what_it_may_not_call() -> None:
    put = Outbox.put_tokens

    def put_and_call(self: Outbox, id: str, *tokens: Any) -> None:
        put(self, id, *tokens)
        self.put_stream(encoding.encode_event(events.ToolCall(id=id, index=0, call_id="c", name="look")))

    replace(Outbox, "put_tokens", put_and_call)


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


# What is cached, and how long a prompt may be.


@mutant("A-1", "a-1-same-answer")
def says_something_else_when_it_has_heard_it_before() -> None:
    add = MockLane.add
    heard: set[Any] = set()

    def add_or_confuse(self: MockLane, key: int, request: Any, *args: Any, **options: Any) -> Any:
        if request.prompt in heard and request.cache != "off":
            request = msgspec.structs.replace(request, prompt=f"again {request.prompt}")
        heard.add(request.prompt)
        return add(self, key, request, *args, **options)

    replace(MockLane, "add", add_or_confuse)


@mutant("A-3", "a-1-same-answer")
def remembers_although_it_must_not() -> None:
    begin = PromptCache.begin
    replace(
        PromptCache,
        "begin",
        lambda self, request, prompt: begin(self, msgspec.structs.replace(request, cache="on"), prompt),
    )


@mutant("A-4", "cache")
def remembers_what_was_cleared() -> None:
    replace(PromptCache, "clear", lambda self: 0)


@mutant("N-7", "n-7-truncate")
def cuts_a_token_more_than_it_must() -> None:
    fit = truncation.fit

    def fit_less(request: Any, tokens: Any, context_len: int) -> Any:
        return fit(request, tokens, context_len - (len(tokens) > context_len))

    replace(truncation, "fit", fit_less)


@mutant("#load", "n-7-truncate")
def takes_no_notice_of_a_loads_context() -> None:
    build = MockLane.__init__

    def build_whole(self: MockLane, load: Load, *args: Any) -> None:
        build(self, msgspec.structs.replace(load, context_len=None), *args)

    replace(MockLane, "__init__", build_whole)


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
    main(["--mock", *(CALLS if MUTANTS[name].calls else ())])


if __name__ == "__main__":
    run(sys.argv[1])
