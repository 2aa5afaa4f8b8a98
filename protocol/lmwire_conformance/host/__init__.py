"""The half of the kit for hosts: it plays their worker. HOSTS.md has the contract of the driver that wraps a host."""

from .cases import CASES, HostCase
from .runner import check_host

__all__ = ["CASES", "HostCase", "check_host"]
