"""A host in one file, to read and to copy, also into other languages: minimal_host.py MODEL PROMPT.

It needs only Python's standard library. PROTOCOL.md has the rules that the comments name, and `lmwire conformance host`
plays its cases with this file. One thread reads both pipes, and one waits for the process.
"""
# pyright: basic

import json
import os
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from signal import SIGKILL, SIGTERM
from time import monotonic
from typing import Any

LINE_IN_BYTES = 32 * 1024 * 1024
LINE_BYTES = 1024 * 1024
BANNER_BYTES = 64 * 1024
NUMBER = (int, float)
RESULT = {
    "finish_reason": str,
    "seed": int,
    "usage": {"prompt_tokens": int, "cached_tokens": int, "completion_tokens": int},
    "timings": {"queued_ms": NUMBER, "total_ms": NUMBER},
}
FINISH_REASONS = ("stop", "length", "tool_calls", "cancelled", "timeout", "capacity")
HELLO = {
    "protocol": int,
    "worker": str,
    "pid": int,
    "engines": [str],
    "features": [str],
    "limits": {"line_in_bytes": int, "line_out_bytes": int, "requests": int, "queued_bytes": int},
}
DONE = {"hello": HELLO, "generate": RESULT, "chat": RESULT, "cancel": {"matched": int}}
EVENTS = {
    "progress": {"stage": str, "current": int, "unit": str},
    "token": {"token": str, "token_ids": [int]},
    "tool_call": {"index": int},
    "done": {},
    "error": {"error": str, "code": str, "retryable": bool},
}
"""Members that are always present in the events that this host asks for. DONE adds to `done`, by command."""


class RequestFailed(Exception):
    """A request failed. `code` is the worker's, `worker_lost` or `timeout`; the last two have no `retryable`."""

    def __init__(self, event: dict[str, Any]) -> None:
        super().__init__(event["error"])
        self.code: str = event["code"]
        self.retryable: bool | None = event.get("retryable")


class Request:
    """A request: its id, its command, and the events that have arrived."""

    def __init__(self, id: str, command: str) -> None:
        self.id = id
        self.command = command
        self.events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()


class Worker:
    """A worker's process, and the requests in flight."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(  # [H-1]
            command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self.stderr_end = b""
        self.ids = count(1)
        self.lock = threading.Lock()  # for the next four
        self.requests: dict[str, Request] = {}
        self.lost: dict[str, Any] | None = None
        self.is_greeted = False
        self.is_reaped = False
        self.write_lock = threading.Lock()
        self.skipped_bytes = 0
        self.exited = threading.Event()
        self.exit_notice, self.exit_notice_end = os.pipe()  # readable once the process has exited: it wakes the reader
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        threading.Thread(target=self._wait_for_exit, daemon=True).start()

    def start(self, seconds: float = 30) -> dict[str, Any]:
        """Agree on version 1, or kill the worker. Return the reply, whose `features` say what may be sent [V-3]."""
        try:
            hello = self.result(self.send("hello"), seconds)
            if hello["protocol"] != 1:
                raise RequestFailed(failure("worker_lost", "the worker agrees on a version that was not offered"))
        except RequestFailed:
            self.signal(SIGKILL)
            raise
        return hello

    def stop(self, waits: tuple[float, float, float] = (5, 2, 3)) -> None:
        """End the worker by the steps of [H-7]."""
        threading.Thread(target=self.send, args=("quit",), daemon=True).start()  # an earlier write may be stuck
        steps = (self.stdin.close, lambda: self.signal(SIGTERM), lambda: self.signal(SIGKILL))
        for wait, step in zip(waits, steps, strict=True):
            if self.exited.wait(wait):
                break
            step()
        if not self.exited.wait(5):
            raise RuntimeError(f"process {self.process.pid} hangs in the system")
        self.reader.join(5)  # the last events, which it passes on within a second

    def send(self, command: str, **fields: Any) -> Request:
        """Write a command, without waiting for its answer."""
        request = Request(str(next(self.ids)), command)
        line = json.dumps({"id": request.id, "cmd": command, **fields}).encode() + b"\n"  # the id first [F-9]
        with self.lock:
            if self.lost:  # nobody will answer any more
                request.events.put(self.lost)
                return request
            if (size := len(line) - 1) > LINE_IN_BYTES:  # [F-3]
                request.events.put(failure("line_too_long", f"the line has {size} bytes", retryable=False))
                return request
            self.requests[request.id] = request  # before the write: the answer can be fast
        with self.write_lock, suppress(OSError, ValueError):  # the reader learns why the worker does not read [H-3]
            while line:
                line = line[self.stdin.write(line) :]
        return request

    def cancel(self, request: Request) -> None:
        """End a request early. It still gets its terminal [C-3]."""
        self.send("cancel", target=request.id)

    def result(
        self, request: Request, seconds: float | None = None, on_event: Callable[[dict[str, Any]], object] = bool
    ) -> dict[str, Any]:
        """Wait for a request's `done` and return it. `on_event` gets the events before it."""
        end = None if seconds is None else monotonic() + seconds
        while True:
            try:
                event = request.events.get(timeout=end and max(0.0, end - monotonic()))
            except queue.Empty:
                self.cancel(request)  # its id stays taken until its terminal [H-8]
                raise RequestFailed(failure("timeout", "no answer in time")) from None
            if event["event"] == "error":
                raise RequestFailed(event)
            if event["event"] == "done":
                return event
            on_event(event)

    def chat(self, messages: list[dict[str, Any]], show: Callable[[str], object], seconds: float | None = None) -> str:
        """Show an answer while it is made [K-6], and return its `finish_reason`."""

        def show_content(event: dict[str, Any]) -> None:
            if event["event"] == "token" and event.get("channel") in (None, "content"):
                show(event["token"])

        return finish_reason(self.result(self.send("chat", messages=messages), seconds, show_content))

    def signal(self, number: int) -> None:
        """Signal the worker's group. After the process was reaped, its id can belong to another one."""
        with self.lock, suppress(ProcessLookupError, PermissionError):
            if not self.is_reaped:
                os.killpg(self.process.pid, number)

    def _wait_for_exit(self) -> None:
        if hasattr(os, "waitid"):  # which leaves it to be reaped; macOS has it from Python 3.13 on
            os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self.process.wait()
        self.signal(SIGKILL)  # its children must not outlive it [H-9]
        self.process.wait()
        with self.lock:
            self.is_reaped = True
        self.exited.set()
        os.close(self.exit_notice_end)

    def _read(self) -> None:
        """Read both pipes until the process has exited and they have ended, or 1 s after the exit [H-9]."""
        pipes, exits, half, limit = {self.stdout.fileno(), self.stderr.fileno()}, {self.exit_notice}, b"", None
        stdout = self.stdout.fileno()
        while pipes or exits:
            wait = None if limit is None else max(0.0, limit - monotonic())
            ready = set(select.select([*pipes, *exits], [], [], wait)[0])
            if not ready and not exits:
                break
            if not ready:  # stdout ended, and the process lives on
                self.signal(SIGKILL)
                limit = None
            if ready & exits:
                exits, limit = set[int](), monotonic() + 1
            for pipe in ready & pipes:
                if not (chunk := os.read(pipe, 64 * 1024)):
                    pipes.remove(pipe)
                    if pipe == stdout and exits:
                        limit = monotonic() + 5
                elif pipe == stdout:
                    half = self._take(half + chunk)
                else:
                    self.stderr_end = (self.stderr_end + chunk)[-4096:]
        ending = f"the worker exited with code {self.process.returncode}"  # half a line is discarded [H-6]
        self._lose(f"{ending}: {self.stderr_end.decode(errors='replace')}")
        for end in (self.stdin, self.stdout, self.stderr):
            end.close()
        os.close(self.exit_notice)

    def _take(self, data: bytes) -> bytes:
        """Pass on the events of whole lines, and return the rest."""
        *lines, half = data.split(b"\n")
        for line in (*lines, half):
            if problem := "over 1 MiB" if len(line) > LINE_BYTES else line is not half and self._pass_on(line):
                self._lose(f"the worker wrote a line that is {problem}: {line[:200]!r}")  # [H-5]
                self.signal(SIGKILL)
            if self.lost:
                return b""
        return half

    def _pass_on(self, line: bytes) -> str | None:
        """Pass an event on. Return what is wrong with the line if it breaks the protocol."""
        try:
            event = json.loads(line, parse_constant=int)  # which fails for NaN and Infinity: they are not JSON
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            if not line.strip(b" \t\r"):
                return None
            if self.is_greeted:
                return "no JSON object"
            self.skipped_bytes += len(line) + 1  # a login banner [H-4]
            return "beyond 64 KiB of a banner" if self.skipped_bytes > BANNER_BYTES else None
        kind, id = event.get("event"), event.get("id")
        if kind not in [*EVENTS] or (kind == "error" and id is None):
            return None  # an event of a later version [V-4], or an error that ends no request [T-2]
        if not isinstance(id, str):
            return None if kind == "progress" else f"a `{kind}` without an id"
        if not (request := self.requests.get(id)):
            return None
        form = EVENTS[kind] | (DONE.get(request.command, {}) if kind == "done" else {})
        if not fits(event, form):
            return None if kind == "progress" else f"a malformed `{kind}`"
        if kind in ("done", "error"):
            with self.lock:
                del self.requests[id]
            self.is_greeted = self.is_greeted or request.command == "hello"
        request.events.put(event)
        return None

    def _lose(self, sentence: str) -> None:
        """Fail the requests in flight and all later ones, once."""
        with self.lock:
            self.lost = self.lost or failure("worker_lost", sentence)
            waiting, self.requests = self.requests, {}
        for request in waiting.values():
            request.events.put(self.lost)


def failure(code: str, sentence: str, **more: Any) -> dict[str, Any]:
    """Return an error that the host makes itself."""
    return {"event": "error", "error": sentence, "code": code, **more}


def finish_reason(done: dict[str, Any]) -> str:
    """Return why an answer ended. A reason of a later version reads as `other` [V-4]."""
    return done["finish_reason"] if done["finish_reason"] in FINISH_REASONS else "other"


def fits(value: Any, form: Any) -> bool:
    """Return whether a value has the form: a type, some types, a list of one form, or an object with these members."""
    if isinstance(form, dict):
        return isinstance(value, dict) and all(fits(value.get(name), part) for name, part in form.items())
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0]) for item in value)
    return type(value) in (form if isinstance(form, tuple) else (form,))


def main(model: str, prompt: str) -> None:
    """Answer one prompt."""
    worker = Worker("lmwire", "worker")
    try:
        worker.start()
        worker.result(worker.send("load", path=model))
        worker.chat([{"role": "user", "content": prompt}], lambda text: print(text, end="", flush=True), seconds=600)
        print()
    except RequestFailed as failure:
        sys.exit(f"{failure.code}: {failure}")
    finally:
        worker.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
