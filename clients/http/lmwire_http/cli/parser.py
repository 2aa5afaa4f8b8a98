"""The argument parser of `lmwire serve`."""

import argparse
from pathlib import Path
from typing import Any, Final

from lmwire.cli.option_sources import SourcedParser

from ..settings import Settings
from . import answer_options, model_options, server_options

_DESCRIPTION: Final = """\
Serve models over HTTP with the APIs of OpenAI, Anthropic and Ollama. Point a client at http://127.0.0.1:8080/v1, with
any API key. Each model runs in a process of its own, which starts at the model's first request. Ctrl-C or SIGTERM stops
the server after the running requests; a second one stops it at once.
Besides the APIs, the server has /health, /ready, /metrics (Prometheus), /openapi.json and /docs.
Environment variables with the prefix LMWIRE_SERVE set options, too: LMWIRE_SERVE_MAX_QUEUE sets --max-queue. So does
the table [serve] of the config file: see lmwire config."""
_EXAMPLES: Final = """\
examples:
  lmwire serve                                          any model on this machine
  lmwire serve mlx-community/Qwen3-0.6B-4bit --preload  one model, loaded at once
  lmwire serve ./chat ./embed --memory 24G --idle 10m   two models, unloaded when idle
  lmwire serve MODEL --host 0.0.0.0 --api-key-file keys.txt
  lmwire serve MODEL --uds /run/lmwire.sock
  curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "MODEL", "messages": [{"role": "user", "content": "Who are you?"}]}'
"""


class Parser(SourcedParser):
    """A parser whose defaults are those of `Settings`."""

    def default_of(self, action: argparse.Action) -> Any:
        """Return the value of an option that no source sets."""
        return action.default or getattr(Settings(), action.dest, action.default)


def make_parser() -> Parser:
    """Return the parser. An option that is not given is None, so that `Settings` has all defaults."""
    parser = Parser(prog="lmwire serve", description=_DESCRIPTION, epilog=_EXAMPLES)
    defaults = Settings()
    parser.add_argument(
        "--env-file", type=Path, metavar="FILE", help="read environment variables from this file, such as .env"
    )
    model_options.add_models(parser)
    server_options.add_access(parser.add_argument_group("address and access"), defaults)
    model_options.add_limits(parser.add_argument_group("models in memory"), defaults)
    server_options.add_limits(parser.add_argument_group("requests and connections"), defaults)
    answer_options.add_answers(parser.add_argument_group("answers"))
    model_options.add_workers(parser.add_argument_group("workers"))
    return parser
