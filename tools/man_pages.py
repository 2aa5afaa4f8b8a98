"""Write the manual pages of `lmwire` and its commands from the parsers: `python tools/man_pages.py FOLDER`.

The pages are in the format of man(7): https://man7.org/linux/man-pages/man7/man.7.html
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import lmwire_protocol
from lmwire.cli.arguments.commands import subcommands_of
from lmwire.cli.command_tree import complete_parser
from lmwire.cli.option_sources import SourcedParser

_ESCAPED = {"\\": "\\e", "-": "\\-", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga"}


def write_man_pages(folder: Path) -> list[Path]:
    """Write a page for `lmwire` and for each of its commands, and return the files.

    Args:
        folder: The folder to write into. It is created if need be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{_page_name(parser)}.1" for parser in _tree(complete_parser())]
    for file, parser in zip(files, _tree(complete_parser()), strict=True):
        file.write_text("\n".join(_page(parser)) + "\n")
    return files


def _tree(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for each in subcommands_of(parser).values():
        yield from _tree(each)


def _page(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the lines of a page."""
    name = _page_name(parser)
    yield f'.TH "{_text(name.upper())}" 1 "" "lmwire {lmwire_protocol.__version__}" "lmwire"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(_summary(parser))}")
    yield from (".SH SYNOPSIS", ".nf", *map(_line, _usage(parser).splitlines()), ".fi")
    yield from (".SH DESCRIPTION", *map(_line, (parser.description or _summary(parser)).splitlines()))
    for group in parser._action_groups:
        shown = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if shown and not isinstance(shown[0], argparse._SubParsersAction):
            yield f'.SH "{_text((group.title or "options").upper())}"'
            for action in shown:
                yield from _option(parser, action)
    if below := subcommands_of(parser):
        yield ".SH COMMANDS"
        for each in below.values():
            yield from (".TP", f"\\fB{_text(_page_name(each))}\\fR(1)", _line(_summary(each)))
    if parser.epilog:
        yield from (".SH NOTES", ".nf", *map(_line, parser.epilog.rstrip().splitlines()), ".fi")


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    value = str(action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper()))
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in action.option_strings)
    shown = f"\\fI{_text(value)}\\fR" if action.nargs != 0 else ""
    yield from (".TP", " ".join(filter(None, (names, shown))))
    yield _line((action.help or "").replace("%%", "%"))
    if (
        isinstance(parser, SourcedParser)
        and action in parser.settable()
        and parser.command[0] not in ("worker", "mock")
    ):
        yield from (".br", _line(f"Variable: {parser.variable_of(action)}"))


def _summary(parser: argparse.ArgumentParser) -> str:
    """Return the first sentence of a parser's description."""
    text = " ".join((parser.description or f"commands of {parser.prog}").split())
    return re.split(r"(?<=[a-z)])\. |: ", text)[0].rstrip(".")


def _usage(parser: argparse.ArgumentParser) -> str:
    return parser.format_usage().removeprefix("usage: ")


def _page_name(parser: argparse.ArgumentParser) -> str:
    return parser.prog.replace(" ", "-")


def _line(text: str) -> str:
    """Return a line of text. One that begins with a dot or a quote would be a request."""
    escaped = _text(text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _text(text: str) -> str:
    """Return text as a page has it: special characters escaped, and those beyond ASCII by their numbers."""
    return "".join(
        _ESCAPED.get(character, character if character.isascii() else f"\\[u{ord(character):04X}]")
        for character in text
    )


if __name__ == "__main__":
    write_man_pages(Path(sys.argv[1]))
