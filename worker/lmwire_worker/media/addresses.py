"""Resolve host names, and refuse hosts that are not public."""

import ipaddress
import socket
from typing import Final

from .media_error import MediaError

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
