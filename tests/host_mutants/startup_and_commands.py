"""Hosts with faults in starting a worker or in writing commands."""

import json
import os
import subprocess
from typing import Any

import lmwire.protocol.session
from lmwire import ClientSession
from lmwire.base_worker import BaseWorker
from lmwire.transport.process import Process
from lmwire_protocol import Hello, encode_command
from support.protocol.mutation import mutant, wrap


@mutant("F-9", "commands.writes-the-id-first")
def writes_the_id_last() -> None:
    def encode(id: str, command: Any) -> bytes:
        fields = json.loads(encode_command(id, command))
        return json.dumps({**{name: fields[name] for name in fields if name != "id"}, "id": id}).encode() + b"\n"

    lmwire.protocol.session.encode_command = encode


@mutant("#commands", "startup.sends-hello-first")
def writes_a_field_of_its_own() -> None:
    lmwire.protocol.session.encode_command = lambda id, command: encode_command(id, command)[:-2] + b',"stream":true}\n'


@mutant("#commands", "commands.sends-fields-unchanged:settings")
def writes_integers_as_numbers() -> None:
    def encode(id: str, command: Any) -> bytes:
        return json.dumps(json.loads(encode_command(id, command), parse_int=float)).encode() + b"\n"

    lmwire.protocol.session.encode_command = encode


@mutant("F-3", "commands.sends-no-line-over-32-mib")
def writes_lines_of_any_length() -> None:
    lmwire.protocol.session.LINE_IN_BYTES = 1 << 40


@mutant("I-2", "commands.uses-no-id-that-is-in-flight")
def numbers_requests_by_how_many_run() -> None:
    def send(original: Any, self: Any, command: Any) -> Any:
        self._ids = iter([len(self._pending) + 1])
        return original(self, command)

    wrap(ClientSession, "send", send)


@mutant("H-3", "commands.reads-while-its-write-is-stuck")
def waits_for_its_writes() -> None:
    def write(original: Any, self: Any, data: bytes) -> None:
        os.set_blocking(self._stdin.fileno(), True)
        self._stdin.write(data)

    wrap(Process, "write", write)


@mutant("E-5", "startup.names-itself-as-the-host")
def names_another_process_as_the_host() -> None:
    def encode(id: str, command: Any) -> bytes:
        line = encode_command(id, command)
        return line[:-2] + b',"host_pid":1}\n' if isinstance(command, Hello) else line

    lmwire.protocol.session.encode_command = encode


@mutant("H-4", "startup.skips-a-banner")
def skips_no_banner() -> None:
    lmwire.protocol.session.BANNER_BYTES = 0


@mutant("H-4", "startup.gives-up-a-banner-over-64-kib")
def skips_a_banner_of_any_length() -> None:
    lmwire.protocol.session.BANNER_BYTES = 1 << 30


@mutant("H-4", "startup.ignores-blank-lines-before-the-reply-to-hello")
def takes_blank_lines_for_a_banner() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data if self._handshake_done else data.replace(b" ", b"-"))

    wrap(ClientSession, "receive", receive)


@mutant("H-5", "startup.kills-the-worker-after-an-incomplete-event-before-the-reply-to-hello")
def takes_a_malformed_event_for_a_banner() -> None:
    def skip(original: Any, self: Any, line: bytes, error: Exception) -> Any:
        return original(self, line, error) if self._handshake_done else None

    wrap(ClientSession, "_reject_or_skip", skip)


def ignore_lines(mark: bytes) -> None:
    """Ignore the lines of the worker that contain a mark."""

    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, b"\n".join(line for line in data.split(b"\n") if mark not in line))

    wrap(ClientSession, "receive", receive)


@mutant("V-1", "startup.reports-a-refused-version-at-once:that-lives-on")
def waits_after_a_refused_version() -> None:
    ignore_lines(b'"code":"unsupported_protocol"')


@mutant("H-4", "startup.kills-a-worker-that-answers-hello-with-any-error")
def waits_after_another_error_of_hello() -> None:
    ignore_lines(b'"code":"busy"')


@mutant("V-1", "startup.rejects-a-version-that-it-did-not-offer")
def waits_after_a_version_that_it_did_not_offer() -> None:
    ignore_lines(b'"protocol":2')


@mutant("H-1", "startup.gives-the-worker-pipes-and-its-own-process-group")
def starts_the_worker_in_its_own_group() -> None:
    wrap(
        subprocess,
        "Popen",
        lambda original, *arguments, **keywords: original(*arguments, **keywords | {"start_new_session": False}),
    )


@mutant("H-1", "startup.gives-the-worker-pipes-and-its-own-process-group")
def starts_the_worker_through_a_shell() -> None:
    def init(original: Any, self: Any, command: list[str], **keywords: Any) -> None:
        original(self, ["/bin/sh", "-c", '"$@"; exit', "sh", *command], **keywords)

    wrap(Process, "__init__", init)


@mutant("H-7", "startup.gives-up-a-worker-that-never-answers-hello")
def waits_for_hello_for_ever() -> None:
    def init(original: Any, self: Any, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **keywords | {"start_timeout": 600.0})

    wrap(BaseWorker, "__init__", init)
