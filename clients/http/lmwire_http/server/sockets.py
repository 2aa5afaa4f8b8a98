"""The sockets that the server listens on. They are there before any worker is: a taken port costs no loading."""

import errno
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from lmwire.command.failures import USAGE, Failure

from ..settings import Settings

UNAVAILABLE: Final = 69
_BACKLOG: Final = 2048
_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class CannotListen(Failure):
    """There is nothing to serve on."""

    def __init__(self, sentence: str, code: int = UNAVAILABLE) -> None:
        super().__init__(sentence, code)


class Listening(NamedTuple):
    """Sockets, and where they are."""

    sockets: Sequence[socket.socket]
    where: str
    """For people: `http://127.0.0.1:8080`, or `unix:/run/lmwire.sock`."""


@contextmanager
def listening(settings: Settings) -> Iterator[Listening]:
    """Listens, until the block ends.

    Raises:
        CannotListen: the address is taken, is none, or would let anybody in.
    """
    with ExitStack() as cleanup:
        yield _unix(settings.uds, cleanup) if settings.uds else _tcp(settings, cleanup)


def _tcp(settings: Settings, cleanup: ExitStack) -> Listening:
    addresses = _resolve(settings.host, settings.port)
    if not (settings.api_keys or settings.public or all(_is_loopback(host) for _, host in addresses)):
        raise CannotListen(
            f"--host {settings.host} lets other machines in: have an API key asked of them (--api-key-file FILE), "
            "or say --public, to let anybody ask anything",
            USAGE,
        )
    sockets: list[socket.socket] = []
    port = settings.port
    for family, host in addresses:
        try:
            sockets.append(cleanup.enter_context(_bound(family, host, port)))
        except OSError as error:
            # Of a name's addresses some may not be there, as ::1 where IPv6 is off; the last one decides.
            if error.errno not in _NOT_HERE or not (sockets or host != addresses[-1][1]):
                raise CannotListen(_refusal(error, settings.host, port)) from error
        else:
            port = sockets[0].getsockname()[1]
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    return Listening(sockets, f"http://{name}:{port}")


def _bound(family: int, host: str, port: int) -> socket.socket:
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)


def _resolve(host: str, port: int) -> list[tuple[int, str]]:
    """Each family and address of a name: `localhost` is two on most machines, and clients try either first."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen(f"--host {host}: there is no such address: {error}", USAGE) from error
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def _refusal(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"{host} port {port} is taken: end what listens there, or give another --port (0 takes a free one)"
        case errno.EACCES:
            return f"{host} port {port} is not for this user: give a --port above 1023"
        case errno.EADDRNOTAVAIL:
            return f"--host {host} is no address of this machine"
        case _:
            return f"cannot listen on {host} port {port}: {error.strerror or error}"


def _unix(path: str, cleanup: ExitStack) -> Listening:
    _make_room(path)
    opened = cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    before = os.umask(0o177)  # not chmod: between bind and that, anybody could connect
    try:
        opened.bind(path)
    except OSError as error:
        raise CannotListen(f"--uds {path}: cannot listen there: {error.strerror or error}") from error
    finally:
        os.umask(before)
    made = os.stat(path)
    cleanup.callback(_remove, path, made)
    opened.listen(_BACKLOG)
    return Listening([opened], f"unix:{path}")


def _make_room(path: str) -> None:
    """Removes a socket that nobody listens on, as a killed server leaves it."""
    try:
        found = os.stat(path)
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise CannotListen(f"--uds {path}: there is a file, and no socket: give another path, or remove it", USAGE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            _remove(path, found)
        except OSError as error:
            raise CannotListen(f"--uds {path}: cannot tell whether it is in use: {error.strerror or error}") from error
        else:
            raise CannotListen(f"--uds {path} is taken: end what listens there, or give another path")


def _remove(path: str, made: os.stat_result) -> None:
    """Removes the socket that was made, and no other that has taken its place."""
    try:
        found = os.stat(path)
        if (found.st_dev, found.st_ino) == (made.st_dev, made.st_ino):
            os.unlink(path)
    except OSError:
        return
