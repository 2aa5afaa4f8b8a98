"""Pipes with faults between the worker and its host."""

import threading
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import msgspec

from ...process.stdio import Pipes
from ..catalogue import Chosen
from .lines import LINE_FAULTS, Line, apply_line_faults
from .process import leave_a_child

PIPE_FAULTS: Final = ("garbage-before-hello", "grandchild", "ignore-quit", "ignore-eof", "ignore-sigterm")
"""The faults of the pipes themselves."""

_BANNER_LINE = b"Last login: Friday 13\n"


class FaultyPipes(Pipes):
    """Pipes that lose, add and change lines.

    Args:
        io: The real pipes.
        faults: The faults, in the order in which a line passes through them.
    """

    def __init__(self, io: Pipes, faults: Iterable[Chosen]) -> None:
        super().__init__(io.stdin, io.stdout, io.stray_stdout)
        chosen = {name: parameters for name, parameters in faults}
        self._line_faults = [partial(LINE_FAULTS[name], **chosen[name]) for name in chosen if name in LINE_FAULTS]
        self._deaf_to_eof = "ignore-eof" in chosen or "ignore-sigterm" in chosen
        self._deaf_to_quit = "ignore-quit" in chosen or self._deaf_to_eof
        self._half_line = b""
        self._tokens = 0
        self._answering: set[str] = set()
        if "garbage-before-hello" in chosen:
            super().write(_banner(**chosen["garbage-before-hello"]))
        if "grandchild" in chosen:
            leave_a_child(io.stdin, io.stdout, **chosen["grandchild"])

    def read(self, size: int) -> bytes:
        """Read, without the lines and the end that the faults ignore."""
        while data := super().read(size):
            if not self._deaf_to_quit:
                return data
            *lines, self._half_line = (self._half_line + data).split(b"\n")
            if heard := [line + b"\n" for line in lines if not _is_quit(line)]:
                return b"".join(heard)
        if self._deaf_to_eof:
            threading.Event().wait()
        rest, self._half_line = self._half_line, b""
        return rest

    def write(self, data: bytes) -> None:
        """Write each line with its faults."""
        for line in data.splitlines(keepends=True):
            for part in apply_line_faults(self._describe(line), self._line_faults):
                super().write(part)

    def _describe(self, data: bytes) -> Line:
        event: dict[str, Any] = msgspec.json.decode(data)
        kind, id = event.get("event"), event.get("id", "")
        is_first = kind == "token" and id not in self._answering
        if kind == "token":
            self._tokens += 1
            self._answering.add(id)
        elif kind in ("done", "error"):
            self._answering.discard(id)
        return Line(data, event, self._tokens, is_first)


def _banner(bytes: int) -> bytes:
    return (_BANNER_LINE * (bytes // len(_BANNER_LINE) + 1))[: bytes - 1] + b"\n"


def _is_quit(line: bytes) -> bool:
    try:
        command = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(command, dict) and command.get("cmd") == "quit"
