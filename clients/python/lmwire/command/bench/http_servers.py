"""The HTTP servers that are compared, each in a process of its own, and one client for all of them.

The client looks for the few bytes that it needs: what it costs is taken from all servers alike, and should be little.
"""

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, perf_counter, sleep
from types import TracebackType
from typing import Final, NamedTuple, Self

import uvloop

from ...children import child_environment, python_command
from ..failures import Failure

PEERS: Final = {
    "mlx_lm.server": ["mlx_lm", "server"],
    "mlx_vlm.server": ["mlx_vlm.server"],
}
"""The module that each one is, and its command line."""
_START_S: Final = 120.0
TEXT: Final = re.compile(rb'"(?:content|reasoning|reasoning_content)": ?"[^"]')
"""What a stream's first token is known by."""
_MADE: Final = re.compile(rb'"completion_tokens": ?(\d+)')
_DONE: Final = b"data: [DONE]"
_TAIL: Final = 2048
"""Bytes: longer than what a stream ends with, its usage and `_DONE`."""


class Run(NamedTuple):
    """What came of some streams at once."""

    seconds: float
    """From the write of the first request to the end of the last answer."""
    first_token_s: list[float]
    """Of each, from the write of its request."""


class _Times(NamedTuple):
    """When something happened to a stream, by `perf_counter`."""

    written: float
    first: float
    ended: float


class Server:
    """A server that runs. Leaving it ends it."""

    def __init__(self, command: Sequence[str], model: Path, port: int) -> None:
        self.port = port
        self._command, self._model = command, str(model)
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=child_environment()
        )

    def __enter__(self) -> Self:
        """Waits until it has answered once, so that the model is loaded."""
        until = monotonic() + _START_S
        while True:
            try:
                self.answer(["Hello"], 2)
                return self
            except OSError as error:
                if self._process.poll() is not None or monotonic() > until:
                    self._process.kill()
                    raise Failure(f"the server did not start: {' '.join(self._command)}") from error
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

    def answer(self, prompts: Sequence[str], tokens: int) -> Run:
        """Asks all at once, greedily, and reads the streams to their ends."""
        times = uvloop.run(self._read_all([self.request(prompt, tokens) for prompt in prompts], tokens))
        seconds = max(each.ended for each in times) - min(each.written for each in times)
        return Run(seconds, [each.first - each.written for each in times])

    def request(self, prompt: str, tokens: int | None, *, stream: bool = True) -> bytes:
        """A greedy request's bytes. Without `tokens` its answer is as long as the model's context allows."""
        body = json.dumps(
            {
                "model": self._model,
                "messages": [{"role": "user", "content": prompt}],
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

    async def _read_all(self, requests: Sequence[bytes], tokens: int) -> list[_Times]:
        return await asyncio.gather(*(self._read(request, tokens) for request in requests))

    async def _read(self, request: bytes, tokens: int) -> _Times:
        """Reads one stream to its end."""
        loop = asyncio.get_running_loop()
        transport, stream = await loop.create_connection(_Stream, "127.0.0.1", self.port)
        written = perf_counter()
        transport.write(request)
        ended = await stream.ended
        transport.close()
        made = _MADE.search(stream.tail)
        if made is None or int(made[1]) != tokens:
            raise Failure(f"a server did not make {tokens} tokens: {stream.tail.decode(errors='replace')[-300:]}")
        return _Times(written, stream.first or ended, ended)  # tokens without a text, as of half a character


class _Stream(asyncio.Protocol):
    """One answer's bytes, of which only the end is kept."""

    def __init__(self) -> None:
        self.tail = b""
        self.first: float | None = None
        """When the first text came, by `perf_counter`."""
        self.ended: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        """When the last event had come, or the connection was closed."""

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self.tail = self.tail[-_TAIL:] + data
        if self.first is None and TEXT.search(self.tail):
            self.first = perf_counter()
        if _DONE in self.tail:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if exc and not self.ended.done():
            self.ended.set_exception(exc)
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(perf_counter())


def installed_peers() -> list[str]:
    """Those of `PEERS` that can be run here. The others are told of on stderr."""
    there = [name for name in PEERS if find_spec(name.partition(".")[0])]
    for name in PEERS.keys() - there:
        print(f"not measured: {name}, which is not installed", file=sys.stderr)
    return there


def lmwire_server(model: Path) -> Server:
    """The one that `lmwire serve` starts, as this very command."""
    return Server([sys.argv[0], "serve", str(model), "--port", str(port := _free_port())], model, port)


def peer_server(name: str, model: Path) -> Server:
    """One of `PEERS`."""
    command = python_command(*PEERS[name], "--model", str(model), "--host", "127.0.0.1")
    return Server([*command, "--port", str(port := _free_port())], model, port)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]
