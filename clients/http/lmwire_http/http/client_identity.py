"""Who asks, as far as that can be told: the clients among which a model's queue takes turns."""

from collections.abc import Hashable, Mapping, Sequence
from ipaddress import ip_address

Peer = tuple[str, int]
"""The other end of a connection: its address, and its port."""


def client_of(peer: Peer | None, headers: Mapping[str, str], keys: Sequence[str]) -> Hashable:
    """Return whose request it is, which only has to be the same for requests of one client.

    With several keys that is whose key it brings. Else it is the address that it comes from; on this machine, which has
    one address for all, the connection.

    Args:
        peer: Where the connection comes from; None when that is not known.
        headers: The request's, which has been let in.
        keys: Those that open the server.
    """
    if len(keys) > 1:
        given = {headers.get("authorization", "").partition(" ")[2].strip(), headers.get("x-api-key", "")}
        return next((number for number, key in enumerate(keys) if key in given), None)
    if peer is None:
        return None
    address, _ = peer
    return peer if _is_this_machine(address) else address


def _is_this_machine(address: str) -> bool:
    """Return whether all clients with this address are on this machine: the loopback, or a Unix socket."""
    try:
        found = ip_address(address)
    except ValueError:
        return True
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
