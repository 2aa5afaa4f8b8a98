"""Tests of a worker: each transcript is played against it, and every line that it writes is checked."""

from .runner import check_worker

__all__ = ["check_worker"]
