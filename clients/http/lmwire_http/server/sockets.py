"""The sockets that the server listens on. They are opened before any worker starts, so a taken port fails at once."""

import errno
import ipaddress
import os
import socket
import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from ..settings import Settings

_BACKLOG: Final = 2048
_FREE_PORT_TRIES: Final = 100
"""Number of free ports to try for a name with several addresses: any program may have a port at one of them."""
_NOT_AVAILABLE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class CannotListen(Exception):
    """The server cannot listen on the given address.

    Args:
        sentence: What was wrong and what to do.
        exit_code: The program's exit code, as in sysexits.h.
    """

    def __init__(self, sentence: str, exit_code: int = os.EX_UNAVAILABLE) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class ListeningSockets(NamedTuple):
    """The open sockets and their address."""

    sockets: Sequence[socket.socket]
    address: str
    """The address for people: `http://127.0.0.1:8080`, or `unix:/run/lmwire.sock`."""


@contextmanager
def listen(settings: Settings) -> Generator[ListeningSockets]:
    """Listen until the block ends.

    Raises:
        CannotListen: The address is invalid or taken, or would let anyone in.
    """
    with ExitStack() as cleanup:
        yield (
            _listen_on_unix(settings.unix_socket, cleanup)
            if settings.unix_socket
            else _listen_on_tcp(settings, cleanup)
        )


def _listen_on_tcp(settings: Settings, cleanup: ExitStack) -> ListeningSockets:
    addresses = _resolve(settings.host, settings.port)
    if not (settings.api_keys or settings.public or all(_is_loopback(host) for _, host in addresses)):
        raise CannotListen(
            f"--host {settings.host} lets other machines in: require an API key (--api-key-file FILE), "
            "or add --public to serve anyone",
            os.EX_USAGE,
        )
    sockets = _bind_all(addresses, settings, cleanup)
    port = sockets[0].getsockname()[1]
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    return ListeningSockets(sockets, f"http://{name}:{port}")


def _bind_all(addresses: Sequence[tuple[int, str]], settings: Settings, cleanup: ExitStack) -> list[socket.socket]:
    """Return a socket for each address, at the port of the settings, or at one that is free at all addresses."""
    tries = 1 if settings.port else _FREE_PORT_TRIES
    while True:
        tries -= 1
        with ExitStack() as opened:
            try:
                sockets = _bind_at_one_port(addresses, settings.port, opened)
            except OSError as error:
                if tries and error.errno == errno.EADDRINUSE:
                    continue  # the port was free at the first address only
                raise CannotListen(_bind_problem(error, settings.host, settings.port)) from error
            cleanup.enter_context(opened.pop_all())
            return sockets


def _bind_at_one_port(addresses: Sequence[tuple[int, str]], port: int, opened: ExitStack) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    for family, host in addresses:
        try:
            sockets.append(opened.enter_context(_bind(family, host, port)))
        except OSError as error:
            # Some addresses of a name may be missing, such as ::1 where IPv6 is off. Fail if all are missing.
            if error.errno not in _NOT_AVAILABLE or not (sockets or host != addresses[-1][1]):
                raise
        else:
            port = sockets[0].getsockname()[1]
    return sockets


def _bind(family: int, host: str, port: int) -> socket.socket:
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)


def _resolve(host: str, port: int) -> list[tuple[int, str]]:
    """Return the family and address of each address of a name.

    `localhost` has two on most machines, and clients try either first.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen(f"--host {host}: there is no such address: {error}", os.EX_USAGE) from error
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def _bind_problem(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"{host} port {port} is taken: end what listens there, or give another --port (0 takes a free one)"
        case errno.EACCES:
            return f"{host} port {port} is not for this user: give a --port above 1023"
        case errno.EADDRNOTAVAIL:
            return f"--host {host} is not an address of this machine"
        case _:
            return f"cannot listen on {host} port {port}: {error.strerror or error}"


def _listen_on_unix(path: str, cleanup: ExitStack) -> ListeningSockets:
    _remove_stale_socket(path)
    opened = cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    before = os.umask(0o177)  # not chmod: anyone could connect between bind and chmod
    try:
        opened.bind(path)
    except OSError as error:
        raise CannotListen(f"--uds {path}: cannot listen there: {error.strerror or error}") from error
    finally:
        os.umask(before)
    made = os.stat(path)
    cleanup.callback(_remove_socket, path, made)
    opened.listen(_BACKLOG)
    return ListeningSockets([opened], f"unix:{path}")


def _remove_stale_socket(path: str) -> None:
    """Remove a socket that no process listens on, such as one of a killed server."""
    try:
        found = os.stat(path)
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise CannotListen(f"--uds {path}: is a file and not a socket: give another path, or remove it", os.EX_USAGE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            _remove_socket(path, found)
        except OSError as error:
            raise CannotListen(f"--uds {path}: cannot tell whether it is in use: {error.strerror or error}") from error
        else:
            raise CannotListen(f"--uds {path} is taken: end what listens there, or give another path")


def _remove_socket(path: str, made: os.stat_result) -> None:
    """Remove the socket with this status, but not another that has replaced it."""
    try:
        found = os.stat(path)
        if (found.st_dev, found.st_ino) == (made.st_dev, made.st_ino):
            os.unlink(path)
    except OSError:
        return
