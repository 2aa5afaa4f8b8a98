"""Identification of clients, between which a model's queue is fair."""

from collections.abc import Hashable, Sequence
from ipaddress import ip_address

Peer = tuple[str, int]
"""Address and port of a connection's other end."""


def identify_client(peer: Peer | None, key: int | None, keys: Sequence[str]) -> Hashable:
    """Return a value that is equal for requests of the same client.

    With several API keys the key identifies the client. Otherwise its address does. Clients on this machine share one
    address, so there each connection counts as a client.

    Args:
        peer: The connection's other end; None if unknown.
        key: The number of the request's API key; None without one.
        keys: The server's API keys.
    """
    if len(keys) > 1:
        return key
    if peer is None:
        return None
    address, _ = peer
    return peer if _is_this_machine(address) else address


def _is_this_machine(address: str) -> bool:
    """Return whether all clients with this address are on this machine: a loopback address or a Unix socket."""
    try:
        found = ip_address(address)
    except ValueError:
        return True
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
