"""Tests of a host: the kit plays its worker. HOSTS.md describes the driver, the small program around the host."""

from .cases import CASES, HostCase
from .runner import check_host

__all__ = ["CASES", "HostCase", "check_host"]
