"""Arguments of `lmwire serve` from the command line, the environment, the file of `--env-file` and the config file."""

import os
import shlex
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final

from lmwire.cli.arguments import load_config
from lmwire.cli.option_sources import ConfigFile, InvalidConfigFile

from ..http.api_keys import ENVIRONMENT_VARIABLE, exposure_warning
from .parser import Parser

_KEY_VARIABLES: Final = (ENVIRONMENT_VARIABLE, "LMWIRE_SERVE_API_KEY")

_MODEL_PATH: Final = "MODEL_PATH"
"""The model in a file of proxy-inference-engine's. In the environment, the name may belong to another program."""


class InvalidEnvFile(ValueError):
    """A file of variables that cannot be read. The message does not repeat any value."""


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file in the format of python-dotenv: `NAME=value` lines, quoted if need be.

    Values are taken as they are: `$NAME` in one is not replaced.

    Raises:
        InvalidEnvFile: The file cannot be read, or a line is not an assignment.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidEnvFile(f"--env-file: cannot read {path}: {error}") from error
    return dict(_assignments(path, text))


def _assignments(path: Path, text: str) -> Iterator[tuple[str, str]]:
    from dotenv.parser import parse_stream  # only servers with such a file need it

    for binding in parse_stream(StringIO(text)):
        if binding.error or (binding.key is not None and binding.value is None):
            raise InvalidEnvFile(f"--env-file: line {binding.original.line} of {path} is not NAME=value")
        if binding.key is not None and binding.value is not None:
            yield binding.key, binding.value


def parse_arguments(
    parser: Parser, argv: Sequence[str], environment: MutableMapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the parsed arguments, and warnings for the log. Exit with a sentence on stderr if one is invalid.

    Args:
        parser: The command's parser.
        argv: The arguments after `lmwire serve`.
        environment: The environment variables. Those of `--env-file` are added unless they exist.
    """
    config = _load_config(parser, environment)
    arguments = vars(parser.parse_with_sources(argv, environment, config))
    warnings: list[str] = []
    if file := arguments["env_file"]:
        warnings += _add_variables(parser, file, environment)
        arguments = vars(parser.parse_with_sources(argv, environment, config))
    del arguments["env_file"]
    return arguments, warnings + parser.source_warnings(environment, config)


def _load_config(parser: Parser, environment: Mapping[str, str]) -> ConfigFile:
    try:
        return load_config(environment)
    except InvalidConfigFile as error:
        parser.error(str(error))


def remove_keys_from_environment() -> None:
    """Remove the variables with API keys: workers inherit the environment."""
    for variable in _KEY_VARIABLES:
        os.environ.pop(variable, None)


def _add_variables(parser: Parser, file: Path, environment: MutableMapping[str, str]) -> list[str]:
    """Add the variables of a file to the environment, and return a warning if other users can read keys in it."""
    try:
        variables = read_env_file(file)
    except InvalidEnvFile as error:
        parser.error(str(error))
    for name, value in variables.items():
        environment.setdefault(name, value)
    if _MODEL_PATH in variables:
        environment.setdefault("LMWIRE_SERVE_MODEL", shlex.quote(variables[_MODEL_PATH]))
    warning = exposure_warning("--env-file", file) if variables.keys() & set(_KEY_VARIABLES) else None
    return [warning] if warning else []
