"""Workers with faults in terminals, tokens and progress."""

import threading
from typing import Any

import msgspec

from lmwire_protocol import encoding, events
from lmwire_worker.process.stdio import Pipes
from lmwire_worker.session import output_queue, request_registry, request_state
from lmwire_worker.session.output_queue import OutputQueue
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.v1 import EventWriterV1
from support.protocol.mutation import every, mutant, replace, wrap


@mutant("T-1", "t-1-one-terminal")
def drops_a_terminal() -> None:
    every(7, OutputQueue, "put_terminal", lambda put, *arguments: None)


@mutant("T-1", "t-1-one-terminal")
def doubles_a_terminal() -> None:
    every(7, OutputQueue, "put_terminal", lambda put, *arguments: [put(*arguments), put(*arguments)])


@mutant("T-1", "t-1-one-terminal")
def drops_a_refusal() -> None:
    every(5, RequestRegistry, "refuse", lambda refuse, *arguments, **options: None)


@mutant("T-1", "generate")
def writes_events_after_the_terminal() -> None:
    def put_and_go_on(put: Any, self: OutputQueue, id: str, line: bytes) -> None:
        put(self, id, line)
        self.put_stream(encoding.encode_event(events.Token(id=id, token="!", token_ids=[])))

    wrap(OutputQueue, "put_terminal", put_and_go_on)


@mutant("T-1", "generate")
def speaks_of_an_unknown_id() -> None:
    wrap(
        OutputQueue, "put_tokens", lambda put, self, token: put(self, msgspec.structs.replace(token, id=token.id + "?"))
    )


@mutant("T-4", "t-4-command")
def names_no_command() -> None:
    def end_without(terminal: Any, self: EventWriterV1, request: Any, event: Any) -> bytes:
        return terminal(self, request, event).replace(b'"cmd":"info",', b"")

    wrap(EventWriterV1, "terminal", end_without)


@mutant("T-2", "model")
def ends_a_request_with_an_error_without_id() -> None:
    def encode_without(encode: Any, error: Any, *, id: str | None = None, bad_id: str | None = None) -> Any:
        return encode(error, id=None if error.code == "not_loaded" else id, bad_id=bad_id)

    wrap(request_registry, "error_event", encode_without)


@mutant("K-2", "k-1-same-answer")
def merges_tokens_across_ids() -> None:
    def merge(put: Any, self: OutputQueue, token: events.Token) -> None:
        with self._lock:
            last = self._queue[-1] if self._queue else None
            if isinstance(last, events.Token):
                last.token += token.token
                last.token_ids = [*last.token_ids, *token.token_ids]
                return
        put(self, token)

    wrap(OutputQueue, "put_tokens", merge)


@mutant("W-2", "w-1-unread")
def loses_text_when_it_merges() -> None:
    """A text of the first answer. Its tokens wait until all of them have come."""
    ended = threading.Event()
    lost: list[str] = []

    def join_silently(join: Any, run: list[events.Token]) -> events.Token:
        if len(run) > 1 and not lost:
            lost.append(run[-1].token)
            run[-1].token = ""
        return join(run)

    def put_and_tell(put: Any, self: OutputQueue, id: str, line: bytes) -> None:
        put(self, id, line)
        if id == "whole":
            ended.set()

    def write_late(write: Any, self: Pipes, data: bytes) -> None:
        if b'"event":"token"' in data:
            ended.wait()
        write(self, data)

    replace(output_queue, "MERGE_THRESHOLD_BYTES", 0)
    wrap(output_queue, "_join", join_silently)
    wrap(OutputQueue, "put_terminal", put_and_tell)
    wrap(Pipes, "write", write_late)


@mutant("#the-generation-fields", "generate")
def reports_another_seed() -> None:
    replace(request_state, "_seed", lambda command: 5)


@mutant("#commands", "ping-and-stats")
def streams_what_nobody_asked_for() -> None:
    def reply_with_progress(reply: Any, self: RequestRegistry, id: str, line: bytes) -> None:
        self._output.put_stream(encoding.encode_event(events.Progress(id=id, stage="read", current=0, unit="steps")))
        reply(self, id, line)

    wrap(RequestRegistry, "reply", reply_with_progress)


@mutant("#progress", "k-1-same-answer")
def floods_with_progress() -> None:
    def emit_each(emit: Any, self: RequestRegistry, outcomes: Any) -> None:
        for request, outcome in outcomes:
            line = encoding.encode_event(
                events.Progress(id=request.id, stage="prefill", current=1, total=1, unit="tokens")
            )
            self.send_progress(request, line)
            emit(self, [(request, outcome)])

    wrap(RequestRegistry, "deliver", emit_each)
