"""A worker without a model library: the real process around a runner that plays scripted replies.

scenario        rules that choose a request's reply
replies         the replies
prompts         prompts as words, a token each
refusals        requests that the mock refuses
model_loader    loads nothing, as slowly as asked
runner          plays the replies, several at a time, and counts what a prefix cache would hold
choice          one choice, step by step
draft           the tokens of a choice
other_commands  vectors, transcripts and speech
catalogue       the faults' names, and the parser of `--fault`
faults/         the faults
command         the command line of `lmwire mock`
plan            the parts of a worker for a command line

Four modules are shared with real models on purpose, and need no model library: `text_stream.string_matcher` and
`text_stream.logprob_attribution`, `prompts.turns` and `prompts.truncation`.
"""

from .model_loader import MockModelLoader
from .runner import MockRunner

__all__ = ["MockModelLoader", "MockRunner"]
