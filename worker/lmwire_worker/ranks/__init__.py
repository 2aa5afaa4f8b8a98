"""One model over several processes, the ranks. Rank 0 is the worker; each other rank, a follower, repeats its calls."""

from .group import FollowerRanks, LeaderRanks, Ranks
from .runner import RankedLoader, RankedRunner

__all__ = ["FollowerRanks", "LeaderRanks", "RankedLoader", "RankedRunner", "Ranks"]
