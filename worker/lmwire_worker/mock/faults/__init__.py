"""Deliberate faults that a host must handle.

replies    faults that are scripted replies
process    faults of the process: its death, its signals, its children
pipes      faults that change the written lines, and the pipes that have them
"""

from .pipes import FaultyPipes
from .process import install_process_faults
from .replies import rules_of

__all__ = ["FaultyPipes", "install_process_faults", "rules_of"]
