"""Loaded models and their worker processes, leased to requests."""

from .pool import Pool
from .status import Lease, ModelStatus, ReplicaStatus, ServedModel

__all__ = ["Lease", "ModelStatus", "Pool", "ReplicaStatus", "ServedModel"]
