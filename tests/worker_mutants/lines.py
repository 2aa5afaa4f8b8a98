"""Workers with faults in reading or writing lines."""

import os
from typing import Any

from lmwire_protocol import Command, LineSplitter, RequestError, commands, decoding, encoding, limits
from lmwire_worker.session import request_registry, v1
from lmwire_worker.session.output_queue import OutputQueue
from lmwire_worker.worker import WorkerProcess
from support.protocol.mutation import mutant, replace, wrap


@mutant("F-13", "f-13-separators")
def escapes_no_separators() -> None:
    replace(encoding, "escape_separators", lambda line: line)


@mutant("F-12", "f-12-short-lines")
def writes_overlong_lines() -> None:
    replace(encoding, "truncate_text", lambda text, limit=0: text)
    replace(encoding, "_FIELD_CHARACTERS", 10**9)


@mutant("F-14", "f-12-short-lines")
def writes_overlong_sentences() -> None:
    replace(encoding, "truncate_text", lambda text, limit=0: text[:5000])


@mutant("F-19", "f-19-silence")
def writes_an_event_before_the_first_request() -> None:
    os.write(1, b'{"event":"ready"}\n')


@mutant("F-18", "hello")
def prints_among_the_lines() -> None:
    wrap(OutputQueue, "put_reply", lambda put, self, line: put(self, b"INFO: replying\n" + line))


@mutant("F-11", "hello")
def leaves_half_a_line() -> None:
    def close_after_half_a_line(close: Any, self: OutputQueue) -> None:
        self.put_reply(b'{"event":"do')
        close(self)

    wrap(OutputQueue, "close", close_after_half_a_line)


@mutant("F-3", "f-3-longest-line")
def takes_lines_of_any_length() -> None:
    replace(limits, "LINE_IN_BYTES", 1 << 40)


@mutant("F-3", "f-3-longest-line")
def counts_the_carriage_return() -> None:
    def append(self: Any, data: bytes) -> None:
        self._size += len(data)
        if data and not self._skipping:
            self._parts.append(data)
            if self._size > self._limit:
                self._parts = [b"".join(self._parts)[:1024]]
                self._skipping = True

    replace(LineSplitter, "_append", append)


@mutant("F-6", "f-6-null")
def takes_null_for_a_value() -> None:
    replace(decoding, "without_nulls", lambda value: value)


@mutant("F-1", "f-1-lines")
def forgets_the_last_line_without_newline() -> None:
    def read(self: WorkerProcess) -> None:
        lines = LineSplitter(limits.LINE_IN_BYTES)
        while data := self._io.read(1 << 16):
            for line in lines.feed(data):
                self._handle(line)
        self._registry.drain()

    replace(WorkerProcess, "_read", read)


@mutant("F-10", "commands-fields")
def accepts_unknown_fields() -> None:
    def decode_known(decode: Any, fields: dict[str, Any]) -> Command:
        command = commands.COMMANDS.get(str(fields.get("cmd")))
        known = ("id", "cmd", *(command.__struct_fields__ if command else ()))
        return decode({name: value for name, value in fields.items() if name in known})

    wrap(v1, "decode_command", decode_known)


@mutant("F-10", "f-10-refusals")
def reports_every_error_as_invalid_request() -> None:
    def invalid(encode: Any, error: RequestError, **ids: Any) -> Any:
        return encode(RequestError("invalid_request", error.message, field=error.field), **ids)

    wrap(request_registry, "error_event", invalid)
