"""How soon a request has ended in its worker when its client has left."""

import re
import socket
from statistics import quantiles
from time import monotonic, perf_counter, sleep
from typing import Final, Literal, get_args
from urllib.request import urlopen

from ..failures import Failure
from .http_servers import TEXT, Server
from .workload import prose

_MADE: Final = re.compile(rb'^lmwire_worker_tokens_total{.*kind="completion".*} (\S+)$', re.MULTILINE)
_CANCELLED: Final = re.compile(rb'^lmwire_worker_requests_total{.*outcome="cancelled".*} (\S+)$', re.MULTILINE)
"""Looked for as bytes: to parse all of /metrics would take its time from what is measured."""
_PATIENCE_S: Final = 10.0
_LONG: Final = 8
"""A prompt that takes a while is so many times as long as those of the other benchmarks: some 1,500 tokens."""

Left = Literal["a stream", "a whole answer", "a prompt in work"]
"""What a client leaves: a stream of which it has read the first token, a whole answer whose first token was made and of
which it has read nothing, or a stream at some moment while its long prompt is processed."""
LEFT: Final[tuple[Left, ...]] = get_args(Left)


def left_ms(server: Server, count: int, what: Left) -> float:
    """The 99th percentile, in milliseconds, of so many clients of `lmwire serve`, one after another.

    From the close of a connection to an answer of /metrics in which the worker has counted a request as cancelled; the
    time that this answer takes is part of it.

    Args:
        server: One that `lmwire_server` started, which does nothing else.
        count: How many clients leave. Those of prompts in work do it at moments spread over the prompt.
        what: What they leave.

    Raises:
        Failure: a request was not cancelled.
    """
    longer, prompt_s = 1, 0.0
    if what == "a prompt in work":
        longer = _LONG
        prompt_s = server.answer([prose(what) * longer], 1).first_token_s[0]
    waits = [
        _left_s(server, prose(f"{turn}/{what}") * longer, what, prompt_s * (0.1 + 0.8 * turn / count))
        for turn in range(count)
    ]
    return 1e3 * quantiles(waits, n=100, method="inclusive")[98]


def _left_s(server: Server, prompt: str, what: Left, stay_s: float) -> float:
    cancelled, made = _figure(server, _CANCELLED), _figure(server, _MADE)
    with socket.create_connection(("127.0.0.1", server.port), _PATIENCE_S) as client:
        client.sendall(server.request(prompt, None, stream=what != "a whole answer"))
        if what == "a stream":
            _read_text(client)
        elif what == "a whole answer":
            _wait_for(server, _MADE, made + 1)
        else:
            sleep(stay_s)
    left = perf_counter()
    _wait_for(server, _CANCELLED, cancelled + 1)
    return perf_counter() - left


def _read_text(client: socket.socket) -> None:
    read = b""
    while not TEXT.search(read):
        if not (data := client.recv(65536)):
            raise Failure("a stream ended before its first token")
        read += data


def _wait_for(server: Server, name: re.Pattern[bytes], value: float) -> None:
    until = monotonic() + _PATIENCE_S
    while _figure(server, name) < value:
        if monotonic() > until:
            raise Failure(
                f"{name.pattern.decode()} did not come to {value:g}, so that no client's leaving was measured"
            )


def _figure(server: Server, name: re.Pattern[bytes]) -> float:
    with urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=_PATIENCE_S) as answer:
        return sum(float(value) for value in name.findall(answer.read()))
