"""Time from a client's disconnect to the end of its request in the worker."""

import re
import socket
from statistics import quantiles
from time import monotonic, perf_counter, sleep
from typing import Final, Literal, get_args
from urllib.request import urlopen

from ...errors import CliError
from ..programs.http_servers import TEXT, HttpServer
from ..workload import text_prompt

_GENERATED: Final = re.compile(rb'^lmwire_worker_tokens_total{.*kind="completion".*} (\S+)$', re.MULTILINE)
_CANCELLED: Final = re.compile(rb'^lmwire_worker_requests_total{.*outcome="cancelled".*} (\S+)$', re.MULTILINE)
_IN_WORK: Final = re.compile(rb"^lmwire_worker_requests_(?:active|queued){.*} (\S+)$", re.MULTILINE)
"""Searched as bytes: parsing all of /metrics would take time from the measurement."""
_TIMEOUT_S: Final = 120.0
_LONG_PROMPT_FACTOR: Final = 8
"""Length of a prompt that takes a while, in prompts of the other benchmarks: some 1,500 tokens."""

Abandoned = Literal["a stream", "a whole answer", "a prompt in work"]
"""Request that a client abandons.

- `a stream`: the client has read its first token.
- `a whole answer`: the worker has generated its first token, and the client has read nothing.
- `a prompt in work`: a stream whose long prompt is being prefilled.
"""
ABANDONED: Final[tuple[Abandoned, ...]] = get_args(Abandoned)


def disconnect_ms(server: HttpServer, count: int, what: Abandoned) -> float:
    """Return the 99th percentile of clients that disconnect one after another, in milliseconds.

    The time runs from the close of a connection to an answer of /metrics in which the worker counts one more cancelled
    request. It includes the time of that answer.

    Args:
        server: A server that `lmwire_server` started, without other clients.
        count: Number of clients. Those with a prompt in work disconnect at moments spread over its prefill.
        what: The request that they abandon.

    Raises:
        CliError: A request was not cancelled within two minutes.
    """
    longer, prompt_s = 1, 0.0
    if what == "a prompt in work":
        longer = _LONG_PROMPT_FACTOR
        prompt_s = server.answer([text_prompt(what) * longer], 1).first_token_s[0]
    waits = [
        _disconnect_s(server, text_prompt(f"{turn}/{what}") * longer, what, prompt_s * (0.1 + 0.8 * turn / count))
        for turn in range(count)
    ]
    return 1e3 * quantiles(waits, n=100, method="inclusive")[98]


def _disconnect_s(server: HttpServer, prompt: str, what: Abandoned, stay_s: float) -> float:
    cancelled, generated = _read_metric(server, _CANCELLED), _read_metric(server, _GENERATED)
    with socket.create_connection(("127.0.0.1", server.port), _TIMEOUT_S) as client:
        client.sendall(server.request(prompt, None, stream=what != "a whole answer"))
        if what == "a stream":
            _read_text(client)
        elif what == "a whole answer":
            _wait_for_metric(server, _GENERATED, generated + 1)
        else:
            _wait_for_metric(server, _IN_WORK, 1)  # a request that has not reached the worker is not cancelled there
            sleep(stay_s)
    left = perf_counter()
    _wait_for_metric(server, _CANCELLED, cancelled + 1)
    return perf_counter() - left


def _read_text(client: socket.socket) -> None:
    read = b""
    while not TEXT.search(read):
        if not (data := client.recv(65536)):
            raise CliError("a stream ended before its first token")
        read += data


def _wait_for_metric(server: HttpServer, name: re.Pattern[bytes], value: float) -> None:
    until = monotonic() + _TIMEOUT_S
    while _read_metric(server, name) < value:
        if monotonic() > until:
            raise CliError(f"{name.pattern.decode()} did not reach {value:g}, so that no disconnect was measured")


def _read_metric(server: HttpServer, name: re.Pattern[bytes]) -> float:
    """Return the sum of a worker's metric. A worker that does not answer the server in time has none for a moment."""
    until = monotonic() + _TIMEOUT_S
    while monotonic() < until:
        with urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=_TIMEOUT_S) as answer:
            if found := name.findall(answer.read()):
                return sum(map(float, found))
    raise CliError(f"the server has no {name.pattern.decode()}")
