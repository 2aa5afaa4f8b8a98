"""Workers of several models, kept for whoever asks."""

from .figures import Lease, ReplicaFigures, ResidentFigures, ServedModel
from .pool import Pool

__all__ = ["Lease", "Pool", "ReplicaFigures", "ResidentFigures", "ServedModel"]
