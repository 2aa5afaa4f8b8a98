"""Variables from the file of `--env-file`."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path


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
