"""Workers of several models, kept for whoever asks."""

from .pool import Lease, Pool

__all__ = ["Lease", "Pool"]
