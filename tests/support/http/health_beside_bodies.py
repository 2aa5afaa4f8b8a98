"""Measure how long /health takes beside hostile bodies, compared with an idle server, and the server's memory.

Run it as `PYTHONPATH=tests python -m support.http.health_beside_bodies`. Each line has the body, its compressed length,
the response's status, the slowest /health, that time as a multiple of the idle server's, and the server's memory.
"""

import gzip
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Final

from support.http.http_server import MOCK, ServerProcess, served_process
from support.http.raw_http import CHAT, RawClient, asked

COMPLETIONS: Final = "/v1/completions"
MESSAGE: Final = b'{"role":"user","content":"hi"}'
TEXT: Final = b'{"type":"text","text":"a"}'
_PAUSE_S: Final = 0.005


def listed(item: bytes, count: int) -> bytes:
    """A list of equal items."""
    return b"[" + b",".join([item] * count) + b"]"


def body(messages: bytes = b"[%b]" % MESSAGE, **fields: bytes) -> bytes:
    """A request with these fields."""
    members = [b'"%b":%b' % (name.encode(), value) for name, value in fields.items()]
    return b'{"model":"mock","messages":%b%b}' % (messages, b"".join(b"," + member for member in members))


def many_parts(parts: int, messages: int) -> bytes:
    """Messages of many parts."""
    return listed(b'{"role":"user","content":%b}' % listed(TEXT, parts), messages)


BODIES: Final[Mapping[str, tuple[str, Callable[[], bytes]]]] = {
    "7.5 million empty prompts": (COMPLETIONS, lambda: b'{"model":"mock","prompt":%b}' % listed(b'""', 7_500_000)),
    "1 million token ids": (COMPLETIONS, lambda: b'{"model":"mock","prompt":%b}' % listed(b"12345", 1_000_000)),
    "1,024 prompts": (
        COMPLETIONS,
        lambda: b'{"model":"mock","prompt":%b,"max_tokens":1,"echo":true}' % listed(b'"a"', 1024),
    ),
    "500,000 messages": (CHAT, lambda: body(listed(MESSAGE, 500_000))),
    "10,000 messages": (CHAT, lambda: body(listed(MESSAGE, 10_000))),
    "500,000 items": ("/v1/responses", lambda: b'{"model":"mock","input":%b}' % listed(MESSAGE, 500_000)),
    "10,000 items": ("/v1/responses", lambda: b'{"model":"mock","input":%b}' % listed(MESSAGE, 10_000)),
    "500,000 biases": (CHAT, lambda: body(logit_bias=_members(500_000))),
    "500,000 stop strings": (CHAT, lambda: body(stop=listed(b'"a"', 500_000))),
    "500,000 unknown fields": (CHAT, lambda: _members(500_000)),
    "100,000 unknown fields": (CHAT, lambda: body()[:-1] + b"," + _members(100_000)[1:]),
    "200,000 unknown objects": (CHAT, lambda: body(unknown=listed(b"{}", 200_000))),
    "500,000 tools": (CHAT, lambda: body(tools=listed(b'{"function":{"name":"f"}}', 500_000))),
    "500,000 parts": (CHAT, lambda: body(many_parts(500_000, 1))),
    "40,000 parts": (CHAT, lambda: body(many_parts(4000, 10))),
    "40,000 parts of Anthropic's": ("/v1/messages", lambda: body(many_parts(4000, 10), max_tokens=b"1")),
    "1 million exponents": (CHAT, lambda: body(unknown=listed(b"1e308", 1_000_000))),
    "4,000 exponents": (CHAT, lambda: body(unknown=listed(b"1e308", 4000))),
    "60,000 decimals": (CHAT, lambda: body(unknown=listed(b"9007199254740993.0", 60_000))),
    "a million brackets": (CHAT, lambda: b"[" * 1_000_000),
    "24 MB of text": (CHAT, lambda: body(b'[{"role":"user","content":"%b"}]' % (b"hi, " * 5_900_000))),
    "60 MB of text": (CHAT, lambda: body(b'[{"role":"user","content":"%b"}]' % (b"hi, " * 15_000_000))),
}


def _members(count: int) -> bytes:
    return b"{" + b",".join([b'"%d":1' % number for number in range(count)]) + b"}"


class Probe:
    """Asks /health all the time while its block runs, and notes the slowest answer and the most memory."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask), threading.Thread(target=self._measure)]
        self.slowest_s = 0.0
        self.memory_mib = 0

    def __enter__(self) -> "Probe":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        with RawClient(self._server.url) as client:
            while not self._ended.is_set():
                start = perf_counter()
                client.ask("GET", "/health")
                client.answer()
                self.slowest_s = max(self.slowest_s, perf_counter() - start)
                sleep(_PAUSE_S)

    def _measure(self) -> None:
        pages = Path(f"/proc/{self._server.process.pid}/status")
        while not self._ended.is_set():
            line = next(line for line in pages.read_text().splitlines() if line.startswith("VmRSS"))
            self.memory_mib = max(self.memory_mib, int(line.split()[1]) // 1024)
            sleep(_PAUSE_S)


def main() -> None:
    """Print the table."""
    with served_process("--worker", MOCK) as server:
        asked(server.url, "POST", CHAT, body())
        with Probe(server) as idle:
            sleep(3)
        print(f"idle: {idle.slowest_s * 1000:.0f} ms, {idle.memory_mib} MiB")
        for name, (path, make) in BODIES.items():
            sent = gzip.compress(make(), 1)
            answer: Any = None
            with Probe(server) as probe, suppress(EOFError):
                answer = asked(server.url, "POST", path, sent, content_encoding="gzip")
            status = answer.status if answer else "closed"
            slowest, ratio = probe.slowest_s * 1000, probe.slowest_s / idle.slowest_s
            print(f"{name:28} {len(sent):9,} B  {status}  {slowest:5.0f} ms  {ratio:5.1f} x  {probe.memory_mib} MiB")


if __name__ == "__main__":
    main()
