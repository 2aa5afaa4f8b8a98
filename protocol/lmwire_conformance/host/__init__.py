"""The half of the kit for hosts: it plays their worker. HOSTS.md has the contract of the driver that wraps a host."""

from .runner import names, run

__all__ = ["names", "run"]
