"""Deliberate faults that a host must handle.

replies    faults that are scripted replies
process    faults of the process: its death, its signals, its children
lines      faults that change the written lines
pipes      the pipes with these faults, between the worker and its host
"""

from .pipes import FaultyPipes
from .process import install_process_faults
from .replies import rules_of

__all__ = ["FaultyPipes", "install_process_faults", "rules_of"]
