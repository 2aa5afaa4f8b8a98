"""`lmwire config`: the config file's path, and each option's value and source."""

import argparse
import json
import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from .arguments.commands import HOST_COMMANDS, check_tables, walk
from .command_tree import complete_parser
from .errors import OK, USAGE, CliError
from .option_sources import (
    ConfigFile,
    InvalidConfigFile,
    Setting,
    SourcedParser,
    WrongType,
    config_path,
    read_config_file,
)
from .option_sources.parser import SECRETS
from .option_sources.setting import key_of

_HIDDEN: Final = "(hidden)"


class _Row(NamedTuple):
    """An option, its value, and where the value comes from."""

    key: str
    value: Any
    source: str
    origin: str


def run(arguments: Namespace) -> int:
    """Print what the command line asks for, and return the exit code."""
    try:
        if arguments.action == "path":
            print(config_path(os.environ))
            return OK
        return _show(arguments.command, as_json=arguments.json)
    except InvalidConfigFile as error:
        raise CliError(str(error), USAGE) from None


def _show(names: Sequence[str], *, as_json: bool) -> int:
    config = read_config_file(os.environ)
    tree = complete_parser()
    check_tables(tree, config)
    shown = {".".join(parser.command): list(_rows(parser, config)) for parser in _chosen(tree, names)}
    if as_json:
        commands = {name: {row.key: _as_json(row) for row in rows} for name, rows in shown.items()}
        print(json.dumps({"path": str(config.path), "commands": commands}, indent=2))
    else:
        print(f"# {config.path}{'' if config.path.exists() else ' does not exist'}")
        for name, rows in shown.items():
            print("\n".join((f"\n[{name}]", *map(_line, rows))))
    return OK


def _chosen(tree: argparse.ArgumentParser, names: Sequence[str]) -> list[SourcedParser]:
    found = [parser for parser in walk(tree) if isinstance(parser, SourcedParser)]
    parsers = [parser for parser in found if parser.command[0] not in HOST_COMMANDS]
    chosen = [parser for parser in parsers if parser.command[: len(names)] == tuple(names)]
    if not chosen:
        known = ", ".join(dict.fromkeys(parser.command[0] for parser in parsers))
        raise CliError(f"config show: {' '.join(names)} reads no config file; these do: {known}", USAGE)
    return chosen


def _rows(parser: SourcedParser, config: ConfigFile) -> Iterator[_Row]:
    settings = parser.settings(os.environ, config)
    for action in parser.settable():
        setting = settings.get(action)
        key = key_of(action)
        if setting is None:
            yield _Row(key, parser.default_of(action), "default", "default")
        else:
            value = _check(parser, action, setting)
            yield _Row(key, _HIDDEN if key in SECRETS else value, setting.source, setting.origin)


def _check(parser: SourcedParser, action: argparse.Action, setting: Setting) -> Any:
    """Return the value of a setting, after a check that the command would accept it."""
    try:
        parser.check(action, setting)
        return setting.plain(action)
    except (WrongType, argparse.ArgumentError) as error:
        raise CliError(f"{setting.origin}: {error}", USAGE) from None


def _as_json(row: _Row) -> dict[str, Any]:
    return {"value": row.value, "source": row.source, "origin": row.origin}


def _line(row: _Row) -> str:
    if row.value in (None, [], ()):
        return f"# {row.key} is not set"
    comment = "" if row.value != _HIDDEN else "# "
    return f"{comment}{row.key} = {_toml(row.value)}".ljust(40) + f"  # {row.origin}"


def _toml(value: Any) -> str:
    # JSON's strings, numbers, booleans and arrays of them are TOML's.
    return json.dumps(value, ensure_ascii=False, default=str)
