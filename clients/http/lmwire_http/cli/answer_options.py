"""Options of `lmwire serve` for answers: their length, tool calls and reasoning."""

from lmwire.cli.option_sources import Flag

from .arg_types import ArgumentGroup, count


def add_answers(group: ArgumentGroup) -> None:
    """Add the defaults for requests."""
    group.add_argument(
        "--max-tokens",
        dest="default_max_tokens",
        type=count,
        metavar="N",
        help="maximum length of an answer, in tokens, if the request sets none (default: the rest of the context; "
        "16 for /v1/completions)",
    )
    group.add_argument(
        "--strict-tools",
        action=Flag,
        help="make the arguments of tool calls follow their schema, unless a tool has `strict`: false",
    )
    group.add_argument(
        "--reasoning",
        choices=("on", "off"),
        help="whether models reason if the request does not say (default: as the model does)",
    )
    group.add_argument(
        "--force-reasoning",
        action=Flag,
        help="apply --reasoning to all requests, whatever they say",
    )
    group.add_argument(
        "--reasoning-start",
        metavar="TEXT",
        help="the text that starts the model's reasoning (default: found in its tokenizer)",
    )
    group.add_argument("--reasoning-end", metavar="TEXT", help="the text that ends it")
