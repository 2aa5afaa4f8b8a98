"""Faults on purpose: what a host must cope with, one name each.

catalogue  the names, what they mean, and how `--fault` is read
replies    those that are replies of the lane
process    those of the process: its death, its signals, its children
lines      those that change what is written
pipes      the last two, between the worker and its host
"""

from .pipes import FaultyPipes
from .process import afflict
from .replies import rules_of

__all__ = ["FaultyPipes", "afflict", "rules_of"]
