"""Which hosts on the network a worker fetches from: public ones."""

import ipaddress
import socket
from typing import Final

from .media_error import Problem

_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def public_addresses(host: str, port: int) -> list[str]:
    """What a host's name resolves to. Raises Problem when any of it is not public.

    To connect to what is returned, and not to the name, is what makes the check hold: the next time the name may
    resolve to something else.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Problem(f"names {host!r}, which cannot be resolved: {error.strerror}", retryable=True) from None
    except ValueError:
        raise Problem(f"names {host!r}, which is no host's name") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(map(is_public, addresses)):
        raise Problem(f"names {host!r}, which is no public host: it is on this machine or in a private network")
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = _carried(parsed) or parsed
    unicast = not parsed.is_multicast if parsed.version == 4 else parsed in _GLOBAL_UNICAST
    return unicast and parsed.is_global


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that packets to this one end up at."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
