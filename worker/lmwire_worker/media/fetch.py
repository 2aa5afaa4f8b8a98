"""Fetch files from public hosts, within a time and a size. Redirects may lead to public hosts alone.

Proxies from the environment are not used, because a proxy would resolve the addresses unchecked.
"""

import http.client
import ipaddress
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

from .media_error import MediaError, check_size, check_type
from .media_refs import MediaKind
from .policy import MediaPolicy

# Host names, and hosts that are not public.

_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def public_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a public host.

    The caller must connect to these addresses, not to the name: the name may resolve to others the next time.

    Args:
        host: Name or address of the host.
        port: Port to connect to.

    Raises:
        MediaError: The name does not resolve, or one of its addresses is not public.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise MediaError(f"names {host!r}, which cannot be resolved: {error.strerror}", retryable=True) from None
    except ValueError:
        raise MediaError(f"names {host!r}, which is not a host's name") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(map(is_public, addresses)):
        raise MediaError(f"names {host!r}, which is not a public host: it is on this machine or in a private network")
    return addresses


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = _carried(parsed) or parsed
    unicast = not parsed.is_multicast if parsed.version == 4 else parsed in _GLOBAL_UNICAST
    return unicast and parsed.is_global


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that receives packets to this one, if there is one."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


# Files.

_REDIRECTS: Final = 5
_REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)
_PORTS: Final = {"http": 80, "https": 443}

Resolve = Callable[[str, int], list[str]]
"""Returns the addresses of a host and port. Raises MediaError if they may not be used."""


def fetch(url: str, kind: MediaKind, policy: MediaPolicy, resolve: Resolve = public_addresses) -> bytes:
    """Fetch a file.

    Args:
        url: An http or https address.
        kind: The kind of media that is expected.
        policy: Whether addresses may be fetched, and the limits.
        resolve: Resolves host names.

    Raises:
        MediaError: The address is not allowed, or cannot be fetched.
    """
    if not policy.urls:
        problem = "is an address, and this worker fetches none; start it with --media-urls, or send the file as data"
        raise MediaError(problem, "unsupported")
    deadline = time.monotonic() + policy.fetch_seconds
    for _ in range(1 + _REDIRECTS):
        try:
            answer = _request(_Target.parse(url), kind, policy, deadline, resolve)
        except (OSError, http.client.HTTPException, ValueError) as error:
            _check_time(deadline, policy)
            raise MediaError(f"could not be fetched: {error}", retryable=True) from None
        _check_time(deadline, policy)  # a response that was cut at the deadline may look complete
        if isinstance(answer, bytes):
            return answer
        url = urljoin(url, answer)
    raise MediaError(f"is redirected more than {_REDIRECTS} times")


@dataclass(frozen=True, slots=True)
class _Target:
    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> Self:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise MediaError(f"is not an address: {error}") from None
        if parts.scheme not in _PORTS:
            raise MediaError("is not an http or https address; a data URI goes into `data`, a file's path into `path`")
        if not parts.hostname:
            raise MediaError("is an address without a host")
        if parts.username is not None:
            raise MediaError("holds a name or password for the host, which are not sent")
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], quote(path, safe=string.punctuation))


def _request(target: _Target, kind: MediaKind, policy: MediaPolicy, deadline: float, resolve: Resolve) -> bytes | str:
    """Return the file, or the address that it redirects to."""
    with _connected(target, _addresses(target, deadline, resolve), deadline) as connection:
        connection.request("GET", target.path, headers={"User-Agent": f"lmwire/{__version__}"})
        response = connection.getresponse()
        location = response.getheader("Location")
        if response.status in _REDIRECT_STATUSES and location:
            return location
        if response.status != http.client.OK:
            problem = f"is answered with status {response.status}"
            raise MediaError(problem, retryable=response.status >= http.client.INTERNAL_SERVER_ERROR)
        check_type(response.getheader("Content-Type", "").partition(";")[0].strip().lower(), kind)
        check_size(response.length or 0, policy.max_bytes)
        content = response.read(policy.max_bytes + 1)
        check_size(len(content), policy.max_bytes)
        if response.length:
            raise http.client.IncompleteRead(content, response.length)
        return content


def _addresses(target: _Target, deadline: float, resolve: Resolve) -> list[str]:
    """Resolve in a thread that can be abandoned: resolvers have time-outs of their own."""
    found: Future[list[str]] = Future()

    def ask() -> None:
        try:
            found.set_result(resolve(target.host, target.port))
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    return found.result(_remaining_s(deadline))


@contextmanager
def _connected(target: _Target, addresses: list[str], deadline: float) -> Iterator[http.client.HTTPConnection]:
    """Connect to one of the addresses.

    A timer closes the connection at the deadline: a host that sends a byte now and then would keep it open.
    """
    with _connect(addresses, target.port, deadline) as plain:
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.default_port = _PORTS[target.scheme]
        connection.sock = carrier = _secured(plain, target.host) if target.scheme == "https" else plain
        alarm = threading.Timer(_remaining_s(deadline), _shut_down, [carrier])
        alarm.daemon = True
        alarm.start()
        try:
            yield connection
        finally:
            alarm.cancel()
            connection.close()
            carrier.close()


def _connect(addresses: list[str], port: int, deadline: float) -> socket.socket:
    for address in addresses[:-1]:
        with suppress(OSError):
            return socket.create_connection((address, port), _remaining_s(deadline))
    return socket.create_connection((addresses[-1], port), _remaining_s(deadline))


def _secured(plain: socket.socket, host: str) -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _shut_down(carrier: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(carrier, socket.SHUT_RDWR)  # TLS's own would change what the reading thread uses


def _remaining_s(deadline: float) -> float:
    """Return the seconds until the deadline. Never 0, which would mean not to wait at all."""
    return max(deadline - time.monotonic(), 0.001)


def _check_time(deadline: float, policy: MediaPolicy) -> None:
    if time.monotonic() >= deadline:
        raise MediaError(f"took longer than the limit of {policy.fetch_seconds:g} s", retryable=True)
