"""A worker without a model library: the real process around a lane that answers what it is told to.

scenario   which request gets which reply
replies    what can happen to a request
prompts    what the model is told
cache      what it remembers of that
refusals   what it cannot do
engine     loads nothing, as slowly as asked for
lane       plays the replies, several at a time
choice     one answer, as it is given
draft      and before that
catalogue  the faults' names, and how `--fault` is read
faults/    the faults at work
command    the command line of `lmwire mock`
plan       from there to a worker
"""

from .model_loader import MockModelLoader
from .runner import MockRunner

__all__ = ["MockModelLoader", "MockRunner"]
