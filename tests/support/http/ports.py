"""Ports for programs that must be given one."""

import os
import socket

_PORTS = range(10_000, 30_000)
"""Ports that the system gives to no program that asks for any."""


def unused_port() -> int:
    """Return a port of 127.0.0.1 that nothing uses, and that no other program gets by chance before its use."""
    for number in range(len(_PORTS)):
        port = _PORTS[(os.getpid() + number) % len(_PORTS)]
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")
