"""Hosts that write or start wrongly."""

import json
import os
import subprocess
from typing import Any

import lmwire.session
from lmwire import Session
from lmwire.base import BaseWorker
from lmwire.process import Process
from lmwire_protocol import encode_command
from mutation import mutant, wrap


@mutant("F-9", "commands.ids-stand-first")
def writes_the_id_last() -> None:
    def encode(id: str, command: Any) -> bytes:
        fields = json.loads(encode_command(id, command))
        return json.dumps({**{name: fields[name] for name in fields if name != "id"}, "id": id}).encode() + b"\n"

    lmwire.session.encode_command = encode


@mutant("#commands", "startup.hello-is-the-first-line")
def writes_a_field_of_its_own() -> None:
    lmwire.session.encode_command = lambda id, command: encode_command(id, command)[:-2] + b',"stream":true}\n'


@mutant("#commands", "commands.fields-arrive-as-they-were-given:settings")
def writes_integers_as_numbers() -> None:
    def encode(id: str, command: Any) -> bytes:
        return json.dumps(json.loads(encode_command(id, command), parse_int=float)).encode() + b"\n"

    lmwire.session.encode_command = encode


@mutant("I-2", "commands.ids-in-flight-are-not-used-again")
def numbers_requests_by_how_many_run() -> None:
    def send(original: Any, self: Any, command: Any) -> Any:
        self._ids = iter([len(self._pending) + 1])
        return original(self, command)

    wrap(Session, "send", send)


@mutant("H-3", "commands.both-pipes-can-be-full")
def waits_for_its_writes() -> None:
    def write(original: Any, self: Any, data: bytes) -> None:
        os.set_blocking(self._stdin.fileno(), True)
        self._stdin.write(data)

    wrap(Process, "write", write)


@mutant("H-4", "startup.a-banner-is-skipped")
def skips_no_banner() -> None:
    lmwire.session.BANNER_BYTES = 0


@mutant("H-1", "startup.the-worker-has-pipes-and-a-group-of-its-own")
def starts_the_worker_in_its_own_group() -> None:
    wrap(
        subprocess,
        "Popen",
        lambda original, *arguments, **keywords: original(*arguments, **keywords | {"start_new_session": False}),
    )


@mutant("H-1", "startup.the-worker-has-pipes-and-a-group-of-its-own")
def starts_the_worker_through_a_shell() -> None:
    def init(original: Any, self: Any, command: list[str], **keywords: Any) -> None:
        original(self, ["/bin/sh", "-c", '"$@"; exit', "sh", *command], **keywords)

    wrap(Process, "__init__", init)


@mutant("H-7", "startup.a-worker-that-never-answers-hello-is-given-up")
def waits_for_hello_for_ever() -> None:
    def init(original: Any, self: Any, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **keywords | {"start_timeout": 600.0})

    wrap(BaseWorker, "__init__", init)
