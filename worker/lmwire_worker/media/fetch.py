"""Fetches files from public hosts, within a time and a size, and follows redirects to such hosts alone.

Proxies that the environment names are not used: the check of addresses would then be the proxy's.
"""

import http.client
import socket
import ssl
import string
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote, urljoin, urlsplit

from lmwire_protocol import __version__

from .addresses import public_addresses
from .media_error import Problem, check_size, check_type
from .media_refs import Kind
from .policy import Policy

_REDIRECTS: Final = 5
_REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)
_PORTS: Final = {"http": 80, "https": 443}

Resolve = Callable[[str, int], list[str]]
"""The addresses of a host that may be connected to. Raises Problem."""


def fetch(url: str, kind: Kind, policy: Policy, resolve: Resolve = public_addresses) -> bytes:
    """What is at an address. Raises Problem."""
    if not policy.urls:
        problem = "is an address, and this worker fetches none; start it with --media-urls, or send the file as data"
        raise Problem(problem, "unsupported")
    ends_at = time.monotonic() + policy.fetch_seconds
    for _ in range(1 + _REDIRECTS):
        try:
            answer = _ask(_Target.of(url), kind, policy, ends_at, resolve)
        except (OSError, http.client.HTTPException, ValueError) as error:
            _check_time(ends_at, policy)
            raise Problem(f"could not be fetched: {error}", retryable=True) from None
        _check_time(ends_at, policy)  # what came until then may look whole
        if isinstance(answer, bytes):
            return answer
        url = urljoin(url, answer)
    raise Problem(f"is redirected more than {_REDIRECTS} times")


@dataclass(frozen=True, slots=True)
class _Target:
    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Self:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Problem(f"is no address: {error}") from None
        if parts.scheme not in _PORTS:
            raise Problem("is no http or https address; a data URI goes into `data`, a file's path into `path`")
        if not parts.hostname:
            raise Problem("is an address without a host")
        if parts.username is not None:
            raise Problem("holds a name or password for the host, which are not sent")
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], quote(path, safe=string.punctuation))


def _ask(target: _Target, kind: Kind, policy: Policy, ends_at: float, resolve: Resolve) -> bytes | str:
    """The file, or where else it is."""
    with _connected(target, _addresses(target, ends_at, resolve), ends_at) as connection:
        connection.request("GET", target.path, headers={"User-Agent": f"lmwire/{__version__}"})
        response = connection.getresponse()
        location = response.getheader("Location")
        if response.status in _REDIRECT_STATUSES and location:
            return location
        if response.status != http.client.OK:
            problem = f"is answered with status {response.status}"
            raise Problem(problem, retryable=response.status >= http.client.INTERNAL_SERVER_ERROR)
        check_type(response.getheader("Content-Type", "").partition(";")[0].strip().lower(), kind)
        check_size(response.length or 0, policy.max_bytes)
        content = response.read(policy.max_bytes + 1)
        check_size(len(content), policy.max_bytes)
        if response.length:
            raise http.client.IncompleteRead(content, response.length)
        return content


def _addresses(target: _Target, ends_at: float, resolve: Resolve) -> list[str]:
    """Asks in a thread that can be left behind: resolvers have a patience of their own."""
    found: Future[list[str]] = Future()

    def ask() -> None:
        try:
            found.set_result(resolve(target.host, target.port))
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    return found.result(_left(ends_at))


@contextmanager
def _connected(target: _Target, addresses: list[str], ends_at: float) -> Iterator[http.client.HTTPConnection]:
    """A connection to one of the addresses.

    It is hung up when the time is over: a host that sends a byte now and then would otherwise have all of it.
    """
    with _connect(addresses, target.port, ends_at) as plain:
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.default_port = _PORTS[target.scheme]
        connection.sock = carrier = _secured(plain, target.host) if target.scheme == "https" else plain
        alarm = threading.Timer(_left(ends_at), _hang_up, [carrier])
        alarm.daemon = True
        alarm.start()
        try:
            yield connection
        finally:
            alarm.cancel()
            connection.close()
            carrier.close()


def _connect(addresses: list[str], port: int, ends_at: float) -> socket.socket:
    for address in addresses[:-1]:
        with suppress(OSError):
            return socket.create_connection((address, port), _left(ends_at))
    return socket.create_connection((addresses[-1], port), _left(ends_at))


def _secured(plain: socket.socket, host: str) -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _hang_up(carrier: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(carrier, socket.SHUT_RDWR)  # TLS's own would change what the reading thread is using


def _left(ends_at: float) -> float:
    """Seconds. Above 0, which would mean not to wait at all."""
    return max(ends_at - time.monotonic(), 0.001)


def _check_time(ends_at: float, policy: Policy) -> None:
    if time.monotonic() >= ends_at:
        raise Problem(f"took longer than the {policy.fetch_seconds:g} s that there are", retryable=True)
