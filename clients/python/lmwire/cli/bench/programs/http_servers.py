"""HTTP servers to compare, each in its own process, and one client for all of them.

The client searches the answers for the few bytes that it needs. Its cost should be small, and is the same for all
servers.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from time import monotonic, perf_counter, sleep
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeAlias
from urllib.request import Request, urlopen

import uvloop

from ....child_process import child_environment, python_command
from ...errors import CliError

PEERS: Final = {
    "mlx_lm.server": ["mlx_lm", "server"],
    "mlx_vlm.server": ["mlx_vlm.server"],
}
"""Each server's module, and its command line."""
_PORTS: Final = range(10_000, 30_000)
"""Ports that the system gives to no program that asks for any."""
_next_port: Final = count(os.getpid())
_START_S: Final = 120.0
TEXT: Final = re.compile(rb'"(?:content|reasoning|reasoning_content)": ?"[^"]')
"""Matches the first token of a stream."""
_COMPLETION_TOKENS: Final = re.compile(rb'"completion_tokens": ?(\d+)')
_PROMPT_TOKENS: Final = re.compile(rb'"prompt_tokens": ?(\d+)')
_CACHED_TOKENS: Final = re.compile(rb'"cached_tokens": ?(\d+)')
_DONE: Final = b"data: [DONE]"
_TAIL: Final = 2048
"""Bytes kept of a stream: longer than its end, which is its usage and `_DONE`."""


Message: TypeAlias = dict[str, str]
"""A message of a chat: its role and its content."""


class StreamTimings(NamedTuple):
    """Times of streams that ran at once, in seconds."""

    seconds: float
    """From the write of the first request to the end of the last answer."""
    first_token_s: list[float]
    """For each stream, from the write of its request."""


class Answer(NamedTuple):
    """One stream: its times by `perf_counter`, and what its usage says of the prompt."""

    written: float
    first: float
    ended: float
    prompt_tokens: int
    cached_tokens: int

    @property
    def first_token_s(self) -> float:
        """Time from the write of the request to the first token, in seconds."""
        return self.first - self.written


class HttpServer:
    """A running server. Entering its context waits for it, and exiting ends it.

    Args:
        command: The program and its arguments.
        model: The model folder that it serves.
        port: The port that it listens on.
    """

    def __init__(self, command: Sequence[str], model: Path, port: int) -> None:
        self.port = port
        self._command, self._model = command, str(model)
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=child_environment()
        )

    def __enter__(self) -> Self:
        """Wait for a first answer, so that the model is loaded."""
        until = monotonic() + _START_S
        while True:
            try:
                self.answer(["Hello"], 2)
                return self
            except OSError as error:
                if self._process.poll() is not None or monotonic() > until:
                    self._process.kill()
                    raise CliError(f"the server did not start: {' '.join(self._command)}") from error
                sleep(0.2)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def answer(self, prompts: Sequence[str], tokens: int) -> StreamTimings:
        """Send greedy requests at once, and read their streams to the end.

        Args:
            prompts: The prompt of each request.
            tokens: Length of each answer, in tokens.
        """
        times = uvloop.run(self._read_all([self.request(prompt, tokens) for prompt in prompts], tokens))
        seconds = max(each.ended for each in times) - min(each.written for each in times)
        return StreamTimings(seconds, [each.first_token_s for each in times])

    def request(self, prompt: str, tokens: int | None, *, stream: bool = True) -> bytes:
        """Return the bytes of a greedy request.

        Args:
            prompt: The user's message.
            tokens: Length of the answer, in tokens. None generates until the model's context is full.
            stream: Whether the answer is streamed.
        """
        return self.chat([{"role": "user", "content": prompt}], tokens, stream=stream)

    def chat(self, messages: Sequence[Message], tokens: int | None, *, stream: bool = True) -> bytes:
        """Return the bytes of a greedy request with several messages; see `request`."""
        body = json.dumps(
            {
                "model": self._model,
                "messages": messages,
                "max_tokens": tokens,
                "temperature": 0,
                "stream": stream,
                "stream_options": {"include_usage": True} if stream else None,
            }
        ).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
        )
        return head.encode() + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def tokenize(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a chat's prompt. Only `lmwire serve` has this endpoint.

        Args:
            messages: The conversation so far.
        """
        body = json.dumps({"messages": messages}).encode()
        url = f"http://127.0.0.1:{self.port}/tokenize"
        with urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=_START_S) as reply:
            return json.load(reply)["tokens"]

    async def _read_all(self, requests: Sequence[bytes], tokens: int) -> list[Answer]:
        return await asyncio.gather(*(self.read(request, tokens) for request in requests))

    async def read(self, request: bytes, tokens: int) -> Answer:
        """Send a request, and read its stream to the end.

        Args:
            request: The bytes of a streamed request.
            tokens: Length of its answer, in tokens.

        Raises:
            CliError: The answer has another length.
        """
        loop = asyncio.get_running_loop()
        transport, stream = await loop.create_connection(_StreamProtocol, "127.0.0.1", self.port)
        written = perf_counter()
        transport.write(request)
        ended = await stream.ended
        transport.close()
        generated = _COMPLETION_TOKENS.search(stream.tail)
        if generated is None or int(generated[1]) != tokens:
            raise CliError(f"a server did not generate {tokens} tokens: {stream.tail.decode(errors='replace')[-300:]}")
        prompt, cached = (_count(pattern, stream.tail) for pattern in (_PROMPT_TOKENS, _CACHED_TOKENS))
        # Tokens may have no text, such as half a character.
        return Answer(written, stream.first or ended, ended, prompt, cached)


class _StreamProtocol(asyncio.Protocol):
    """Receives one answer, and keeps only its end."""

    def __init__(self) -> None:
        self.tail = b""
        self.first: float | None = None
        """Time of the first text, by `perf_counter`."""
        self.ended: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        """Time of the last event, or of the connection's close."""

    def data_received(self, data: bytes) -> None:
        """Search the next bytes for the first text and the end."""
        self.tail = self.tail[-_TAIL:] + data
        if self.first is None and TEXT.search(self.tail):
            self.first = perf_counter()
        if _DONE in self.tail:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer, or fail it."""
        if exc and not self.ended.done():
            self.ended.set_exception(exc)
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(perf_counter())


def _count(pattern: re.Pattern[bytes], tail: bytes) -> int:
    """Return the number that a pattern finds in the end of a stream; 0 if it finds none."""
    found = pattern.search(tail)
    return int(found[1]) if found else 0


def installed_peers() -> list[str]:
    """Return the names in `PEERS` that are installed. Name the others on stderr."""
    installed = [name for name in PEERS if find_spec(name.partition(".")[0])]
    for name in PEERS.keys() - installed:
        print(f"not measured: {name}, which is not installed", file=sys.stderr)
    return installed


def lmwire_server(model: Path) -> HttpServer:
    """Start `lmwire serve` with a model, as this very program."""
    return HttpServer([sys.argv[0], "serve", str(model), "--port", str(port := _free_port())], model, port)


def peer_server(name: str, model: Path) -> HttpServer:
    """Start another server with a model.

    Args:
        name: A name in `PEERS`.
        model: The model folder.
    """
    command = python_command(*PEERS[name], "--model", str(model), "--host", "127.0.0.1")
    return HttpServer([*command, "--port", str(port := _free_port())], model, port)


def _free_port() -> int:
    """Return a port that nothing uses, and that no other program gets by chance before the server's start."""
    for _ in _PORTS:
        port = _PORTS[next(_next_port) % len(_PORTS)]
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise CliError("no port is free")
