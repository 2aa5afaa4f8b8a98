"""Servers on this machine: whose socket listens at an address, and requests that go nowhere else.

Any user can listen on a port. Whoever is there receives the API key of a request, and answers as the model.
"""

import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

Owner: TypeAlias = Literal["user", "other", "nobody"]
"""The owner of an address: this user or root alone, others as well, or nobody."""
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN: Final = "0A"
_WORD: Final = 8
_UNKNOWN_UID: Final = 65534
"""Owner that Linux shows for users of another user namespace."""


class _Stay(HTTPRedirectHandler):
    """Follows no redirection: the header with the API key would go along."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


open_url = build_opener(ProxyHandler({}), _Stay).open  # a proxy of the environment must not see requests either


class _Listener(NamedTuple):
    """A socket that listens."""

    host: _Address
    port: int
    uid: int


def listener_of(url: str) -> Owner:
    """Return who listens at the address of a URL, whose host must be an IP address of this machine.

    Linux shows the owner of every socket. macOS shows this user's alone, and gives the port of one user's socket to no
    other user.
    """
    parts = urlsplit(url)
    host, port = ipaddress.ip_address((parts.hostname or "").partition("%")[0]), parts.port or 80
    found = _in_tables() if sys.platform == "linux" else _in_own_processes()
    owners = {each.uid for each in found if each.port == port and _answers(each.host, host)}
    if not owners:
        return "nobody"
    return "user" if owners <= {0, os.geteuid()} - {_UNKNOWN_UID} else "other"


def _answers(listening: _Address, host: _Address) -> bool:
    """Return whether a socket may answer connections to an address. Some of IPv6 answer those of IPv4 too."""
    mapped = listening.ipv4_mapped if isinstance(listening, ipaddress.IPv6Address) else None
    return (mapped or listening) == host or listening.is_unspecified or bool(mapped and mapped.is_unspecified)


def _in_tables() -> Iterator[_Listener]:
    """Yield the sockets of the kernel's tables, which are those of this process's own network."""
    for table in _TABLES:
        try:
            yield from read_table(Path(table).read_text().splitlines()[1:])
        except OSError:  # there is no IPv6, or no /proc
            continue


def read_table(rows: Iterable[str]) -> Iterator[_Listener]:
    """Yield the listening sockets of the rows of a table, as proc(5) describes it."""
    for row in rows:
        _, local, _, state, _, _, _, uid, *_ = row.split()
        if state == _LISTEN:
            host, _, port = local.partition(":")
            # Each word of 32 bits is written as the number that this machine's byte order makes of it.
            words = [int(host[start : start + _WORD], 16) for start in range(0, len(host), _WORD)]
            packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
            yield _Listener(ipaddress.ip_address(packed), int(port, 16), int(uid))


def _in_own_processes() -> Iterator[_Listener]:
    """Yield the sockets of this user's processes."""
    try:
        import psutil
    except ImportError:
        return
    for process in psutil.process_iter():
        try:
            uid = process.uids().effective
            connections = process.net_connections("tcp") if uid == os.geteuid() else []
        except psutil.Error:  # it has ended, or is another user's
            continue
        for connection in connections:
            if connection.status == psutil.CONN_LISTEN and connection.laddr:
                yield _Listener(ipaddress.ip_address(connection.laddr.ip.partition("%")[0]), connection.laddr.port, uid)
