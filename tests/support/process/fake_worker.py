"""Workers that misbehave, each class in one way: `python fake_worker.py CLASS [ARGUMENT]`.

They run as a process or on a thread, so they use no descriptors but those that they are given.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from lmwire_protocol import FEATURES

Request = dict[str, Any]


def fake(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a fake worker."""
    assert name in globals(), name
    return [sys.executable, __file__, name, *arguments]


class Descriptors(NamedTuple):
    """Descriptors of a worker's ends of its pipes."""

    stdin: int
    stdout: int
    stderr: int


PROCESS = Descriptors(0, 1, 2)


def kill_this_process(number: signal.Signals) -> NoReturn:
    """End this process by a signal."""
    os.kill(os.getpid(), number)
    raise AssertionError("the signal did not kill")


def write(descriptor: int, data: bytes) -> None:
    """Write all data. Python's own buffer loses bytes of a large write that a stop of this process interrupts."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def token(id: str, text: str) -> Request:
    return {"event": "token", "id": id, "token": text, "token_ids": [1]}


def result(id: str, reason: str) -> Request:
    usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1}
    timings = {"queued_ms": 0, "total_ms": 1}
    return {"event": "done", "id": id, "finish_reason": reason, "seed": 1, "usage": usage, "timings": timings}


def greeting(id: str, worker: str, features: Sequence[str] = ()) -> Request:
    limits = {"line_in_bytes": 1, "line_out_bytes": 1, "requests": 1, "queued_bytes": 1}
    return {
        "event": "done",
        "id": id,
        "protocol": 1,
        "worker": worker,
        "pid": os.getpid(),
        "engines": [],
        "features": [*features],
        "limits": limits,
    }


class Good:
    """A worker that answers `generate` with the prompt's words. For "forever", it sends one word and awaits a cancel.

    `ping` reports the number of requests that await a cancel.

    Args:
        arguments: The arguments of the class.
        descriptors: The worker's ends of its pipes.
        die: Ends the worker by a signal.
    """

    def __init__(
        self,
        *arguments: str,
        descriptors: Descriptors = PROCESS,
        die: Callable[[signal.Signals], NoReturn] = kill_this_process,
    ) -> None:
        self.arguments = arguments
        self.stdin, self.stdout, self.stderr = descriptors
        self.die = die
        self.waiting: list[str] = []
        self.quitting = False

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of stdin."""
        rest = b""
        while data := os.read(self.stdin, 1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines

    def send(self, *events: Request) -> None:
        """Write events."""
        write(self.stdout, b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events))

    def run(self) -> None:
        for line in self.lines():
            request = json.loads(line)
            getattr(self, request["cmd"])(request)
            if self.quitting:
                break

    def hello(self, request: Request) -> None:
        self.send(greeting(request["id"], f"fake {request.get('host_pid', '')}"))

    def generate(self, request: Request) -> None:
        id = request["id"]
        self.send({"event": "progress", "id": id, "stage": "prefill", "current": 1, "total": 1, "unit": "tokens"})
        if request["prompt"] == "forever":
            self.waiting.append(id)
            self.send(token(id, "once"))
        else:
            self.send(*(token(id, word) for word in request["prompt"].split()), result(id, "stop"))

    def cancel(self, request: Request) -> None:
        found = [id for id in self.waiting if request.get("all") or id == request["target"]]
        self.send(
            {"event": "done", "id": request["id"], "matched": len(found)}, *(result(id, "cancelled") for id in found)
        )
        self.waiting = [id for id in self.waiting if id not in found]

    def ping(self, request: Request) -> None:
        state = "running" if self.waiting else "idle"
        self.send({"event": "done", "id": request["id"], "state": state, "active": len(self.waiting), "queued": 0})

    def info(self, request: Request) -> None:
        error = {"error": "no model is loaded", "code": "not_loaded", "retryable": False}
        self.send({"event": "error", "id": request["id"], **error})

    def quit(self, request: Request) -> None:
        self.send(*(result(id, "cancelled") for id in self.waiting), {"event": "done", "id": request["id"]})
        self.quitting = True


class ServesAll(Good):
    """A worker that lists every feature and answers with the request itself, as JSON. Words are its tokens."""

    def hello(self, request: Request) -> None:
        self.send(greeting(request["id"], "newest", FEATURES))

    def load(self, request: Request) -> None:
        sizes = dict.fromkeys(("vocab_size", "layers", "hidden_size", "context_len", "weights_bytes"), 1)
        model = {"path": request["path"], "model_type": "fake", "capabilities": ["generate", "chat"], **sizes}
        self.send({"event": "done", "id": request["id"], **model})

    def generate(self, request: Request) -> None:
        self.send(token(request["id"], json.dumps(request)), result(request["id"], "stop"))

    chat = generate

    def tokenize(self, request: Request) -> None:
        id = request["id"]
        words = (request.get("prompt") or request["messages"][0]["content"]).split()
        if not request.get("count_only"):
            self.send(*(token(id, word) | {"token_ids": [place]} for place, word in enumerate(words)))
        self.send({"event": "done", "id": id, "count": len(words)})


class RecitesTheLoad(ServesAll):
    """A worker that answers with the last load request, as JSON."""

    def load(self, request: Request) -> None:
        self.loaded = request
        super().load(request)

    def chat(self, request: Request) -> None:
        self.send(token(request["id"], json.dumps(self.loaded)), result(request["id"], "stop"))


class ServesWhatItIsTold(ServesAll):
    """A worker whose features are its arguments."""

    def hello(self, request: Request) -> None:
        self.send(greeting(request["id"], "older", self.arguments))


class PlaysItsPrompt(ServesAll):
    """A worker that sends the events in the prompt, which is a JSON array."""

    def generate(self, request: Request) -> None:
        self.send(*({"event": event["event"], "id": request["id"], **event} for event in json.loads(request["prompt"])))


class RecitesTheConversation(ServesAll):
    """A worker that answers `chat` with all messages, or obeys the last one: "refuse", "think" or "call"."""

    def chat(self, request: Request) -> None:
        id, messages = request["id"], request["messages"]
        conversation = ", ".join(f"{message['role']}: {message['content']}" for message in messages)
        match messages[-1]["content"]:
            case "refuse":
                self.send(
                    {"event": "error", "id": id, "error": "refused", "code": "invalid_request", "retryable": False}
                )
            case "think":
                reasoning = [message["reasoning"] for message in messages if "reasoning" in message]
                self.send(
                    token(id, f"thought {reasoning}") | {"channel": "reasoning"}, token(id, "Done."), result(id, "stop")
                )
            case "call":
                call = {"event": "tool_call", "id": id, "index": 0, "call_id": "c", "name": "look", "complete": True}
                self.send(call | {"arguments": '{"at":"it"}'}, result(id, "tool_calls"))
            case _:
                self.send(token(id, f"({conversation})"), result(id, "stop"))


class CrashesBeforeHello(Good):
    def run(self) -> None:
        write(self.stderr, b"libengine.so: cannot open shared object\n")
        sys.exit(3)


class NeverAnswersHello(Good):
    def hello(self, request: Request) -> None:
        pass


class EchoesItsInput(Good):
    """A program that writes back each line, as `cat` or a terminal does."""

    def run(self) -> None:
        for line in self.lines():
            self.send(json.loads(line))


class StartsSlowly(Good):
    """A worker that first prints a welcome, as a login shell does, and writes `hello`'s answer byte by byte."""

    def hello(self, request: Request) -> None:
        for byte in b"Last login: Friday\n\n*** Welcome ***\n" + json.dumps(greeting(request["id"], "slow")).encode():
            write(self.stdout, bytes([byte]))
        write(self.stdout, b"\n")


class RefusesTheProtocol(Good):
    def hello(self, request: Request) -> None:
        refusal = {"error": "protocol 7 is the oldest here", "code": "unsupported_protocol", "retryable": False}
        self.send({"event": "error", "id": request["id"], **refusal, "protocols": [7]})
        sys.exit(76)


class ExitsMidStream(Good):
    """A worker that exits after half a line."""

    def generate(self, request: Request) -> None:
        self.send(token(request["id"], "half"))
        write(self.stdout, b'{"event":"token","id":"' + request["id"].encode())
        write(self.stderr, b"assertion failed: row 7\n")
        sys.exit(70)


class KilledMidStream(Good):
    def generate(self, request: Request) -> None:
        self.send(token(request["id"], "half"))
        self.die(signal.SIGKILL)


class FloodsStderr(Good):
    """A worker that writes far more to stderr than a pipe holds, before each answer."""

    def generate(self, request: Request) -> None:
        write(self.stderr, b"".join(b"line %d %s\n" % (number, b"x" * 50) for number in range(20_000)))
        super().generate(request)


class WritesGarbage(Good):
    def generate(self, request: Request) -> None:
        self.send(token(request["id"], "good"))
        write(self.stdout, b"WARNING: something printed this\n")
        self.send(token(request["id"], "never seen"))


class ClosesItsStdout(Good):
    """A worker that closes its stdout but keeps running."""

    def generate(self, request: Request) -> None:
        os.close(self.stdout)


class IgnoresQuit(Good):
    def quit(self, request: Request) -> None:
        pass


class IgnoresEndOfInput(IgnoresQuit):
    def run(self) -> None:
        super().run()
        while True:
            signal.pause()


class IgnoresSigterm(IgnoresEndOfInput):
    def run(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().run()


class Hangs(Good):
    """A worker whose engine makes no step while requests wait for it. It answers `ping`, with the age of an hour."""

    def load(self, request: Request) -> None:
        self.waiting.append(request["id"])

    def ping(self, request: Request) -> None:
        waiting = {"state": "running", "step_age_ms": 3_600_000, "active": len(self.waiting), "queued": 0}
        self.send({"event": "done", "id": request["id"], **waiting})


class StopsReading(Good):
    """A worker that reads nothing after `hello`, so that its stdin fills up."""

    def hello(self, request: Request) -> None:
        super().hello(request)
        while True:
            signal.pause()


class LeavesAChild(Good):
    """A worker whose child process keeps its pipes, and the FIFO named in the argument, open."""

    new_session = False

    def hello(self, request: Request) -> None:
        fifo = os.open(self.arguments[0], os.O_RDWR)
        child = subprocess.Popen(["sleep", "600"], pass_fds=[fifo], start_new_session=self.new_session)
        os.close(fifo)
        self.send(greeting(request["id"], str(child.pid)))


class LeavesADaemon(LeavesAChild):
    """A worker whose child is in a session of its own, so that a signal to the group does not reach it."""

    new_session = True


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:]).run()
