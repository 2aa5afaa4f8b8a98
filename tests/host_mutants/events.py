"""Hosts with faults in reading events."""

import json
import os
from typing import Any

import msgspec

import lmwire.protocol.results
import lmwire.protocol.session
from lmwire import ClientSession, RequestFailed, TokenDelta
from lmwire.transport.process import Process
from support.protocol.mutation import mutant, replace, wrap


@mutant("O-1", "events.keeps-requests-apart")
def loses_an_event_of_a_read() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        for arrival in arrivals:
            if len(arrival.events) > 1:
                del arrival.events[0]
        return arrivals

    wrap(ClientSession, "receive", receive)


@mutant("O-1", "events.keeps-requests-apart")
def gives_a_text_to_another_request() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        first = next(iter(self._pending), "")
        arrivals = original(self, data)
        return [
            arrival._replace(id=first) if type(arrival.events[0]) is TokenDelta else arrival for arrival in arrivals
        ]

    wrap(ClientSession, "receive", receive)


@mutant("K-1", "events.joins-the-texts-of-an-answer")
def strips_texts() -> None:
    replace(TokenDelta, "text", property(lambda self: self.token.strip()))


@mutant("F-15", "events.reads-lines-that-are-cut-anywhere")
def decodes_each_read_by_itself() -> None:
    wrap(ClientSession, "receive", lambda original, self, data: original(self, data.decode(errors="replace").encode()))


@mutant("F-12", "events.reads-the-longest-line")
def reads_lines_up_to_32_kib() -> None:
    lmwire.protocol.session.CLIENT_LINE_BYTES = 32 * 1024


@mutant("F-17", "events.reads-the-last-of-several-members-with-one-name")
def reads_the_first_of_several_members() -> None:
    def first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(pairs))

    def receive(original: Any, self: Any, data: bytes) -> Any:
        lines = data.split(b"\n")
        whole = [json.dumps(json.loads(line, object_pairs_hook=first)).encode() for line in lines[:-1]]
        return original(self, b"\n".join([*whole, lines[-1]]))

    wrap(ClientSession, "receive", receive)


def violate_at(mark: bytes) -> None:
    """Take lines that contain a mark for violations."""

    def receive(original: Any, self: Any, data: bytes) -> Any:
        for line in data.split(b"\n"):
            if mark in line:
                self._violate("what this host does not know", line)
        return original(self, data)

    wrap(ClientSession, "receive", receive)


@mutant("F-11", "events.reads-an-event-that-nests-100-deep")
def reads_little_nesting() -> None:
    violate_at(b"[" * 50)


@mutant("V-4", "lines.accepts-the-line:token-channel-unknown")
def dies_of_an_unknown_channel() -> None:
    violate_at(b'"channel":"whisper"')


@mutant("H-5", "lines.kills-the-worker-or-goes-on-after:half-a-surrogate-pair")
def crashes_at_half_a_surrogate_pair() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        if b"ud800" in data:
            os._exit(1)
        return original(self, data)

    wrap(ClientSession, "receive", receive)


@mutant("F-16", "events.reads-null-as-absent")
def takes_null_for_a_value() -> None:
    decode = lmwire.protocol.session._decode

    def strict(line: bytes) -> Any:
        if b":null" in line:
            raise msgspec.ValidationError("Expected `str`, got `null`")
        return decode(line)

    lmwire.protocol.session._decode = strict
    reads_null_as_a_broken_event.mutate()


@mutant("F-16", "choices.accepts-nulls-and-unknown-fields-in-newer-members")
def reads_null_as_a_broken_event() -> None:
    wrap(ClientSession, "_decode_without_nulls", lambda original, self, line, error: self._reject_or_skip(line, error))


@mutant("V-4", "events.ignores-unknown-events")
def dies_of_an_unknown_event() -> None:
    wrap(ClientSession, "_reject_or_skip", lambda original, self, line, error: self._violate("an unknown event", line))


@mutant("H-5", "events.ignores-incomplete-progress:without-stage")
def dies_of_incomplete_progress() -> None:
    def skip(original: Any, self: Any, line: bytes, error: Exception) -> None:
        if line.startswith(b'{"event":"progress"'):
            self._violate("an incomplete progress event", line)
        original(self, line, error)

    wrap(ClientSession, "_reject_or_skip", skip)


@mutant("V-4", "events.ignores-unknown-ids")
def dies_of_an_unknown_id() -> None:
    violate_at(b'"id":"not ')


@mutant("V-4", "events.reads-an-unknown-finish-reason-as-other")
def refuses_an_unknown_value() -> None:
    lmwire.protocol.results._OPEN_TYPES.clear()


@mutant("T-2", "events.ends-no-request-for-an-error-without-an-id")
def ends_a_request_for_an_error_without_an_id() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data.replace(b'"bad_id":', b'"id":'))

    wrap(ClientSession, "receive", receive)


@mutant("T-1", "events.ignores-events-after-a-terminal")
def believes_the_second_terminal() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        lines = data.split(b"\n")
        done = [line for line in lines if line.startswith(b'{"event":"done"')]
        last = {tuple(line.split(b",")[:2]): line for line in done}.values()
        return original(self, b"\n".join(line for line in lines if line not in done or line in last))

    wrap(ClientSession, "receive", receive)


@mutant("W-6", "events.passes-a-failure-on:busy")
def knows_no_failure_that_can_be_retried() -> None:
    def init(original: Any, self: Any, event: Any) -> None:
        original(self, event)
        self.retryable = False

    wrap(RequestFailed, "__init__", init)


@mutant("H-2", "events.reads-a-whole-burst")
def does_not_read_stderr() -> None:
    wrap(Process, "_read_stderr", lambda original, self: b"")
