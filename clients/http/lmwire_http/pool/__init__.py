"""Workers of several models, kept for whoever asks."""

from .pool import Pool
from .status import Lease, ReplicaFigures, ResidentFigures, ServedModel

__all__ = ["Lease", "Pool", "ReplicaFigures", "ResidentFigures", "ServedModel"]
