"""Loaded models and their worker processes, leased to requests."""

from .pool import Pool
from .status import Lease, LoadProgress, ModelState, ModelStatus, ReplicaStatus, ServedModel

__all__ = ["Lease", "LoadProgress", "ModelState", "ModelStatus", "Pool", "ReplicaStatus", "ServedModel"]
