"""Options of `lmwire serve` for the answers of requests that leave something open."""

import argparse

from .arg_types import count


def add_answers(group: argparse._ArgumentGroup) -> None:
    """Add the defaults for requests."""
    group.add_argument(
        "--max-tokens",
        dest="default_max_tokens",
        type=count,
        metavar="N",
        help="maximum length of an answer, in tokens, if the request sets none (default: the rest of the context; "
        "16 for /v1/completions)",
    )
