"""Loaded models and their worker processes, leased to requests."""

from .pool import Pool
from .status import Lease, ModelState, ModelStatus, ReplicaStatus, ServedModel

__all__ = ["Lease", "ModelState", "ModelStatus", "Pool", "ReplicaStatus", "ServedModel"]
