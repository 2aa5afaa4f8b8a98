"""The config file: where it is, and how it is read. It is TOML, with a table for each command."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from lmwire_protocol.command_line import suggestion

VARIABLE: Final = "LMWIRE_CONFIG"
_MAX_BYTES: Final = 1024 * 1024
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_READABLE_BY_OTHERS: Final = stat.S_IRGRP | stat.S_IROTH


class InvalidConfigFile(ValueError):
    """A config file that cannot be read or trusted. The message names the file and the remedy."""


class ConfigFile(NamedTuple):
    """The content of a config file; without tables if there is none."""

    path: Path
    tables: Mapping[str, Any]
    readable_by_others: bool = False

    def table(self, names: Sequence[str]) -> Mapping[str, Any]:
        """Return the table of a command, such as that of `("bench", "pipe")`; an empty one if it is absent.

        Raises:
            InvalidConfigFile: A name on the way is not a table.
        """
        table = self.tables
        for depth, name in enumerate(names, 1):
            found = table.get(name, {})
            if not isinstance(found, dict):
                raise InvalidConfigFile(f"{self.path}: {name} must be a table: write [{'.'.join(names[:depth])}]")
            table = cast("dict[str, Any]", found)
        return table

    def check_names(self, names: Sequence[str], known: Iterable[str]) -> None:
        """Check that a table has only known keys.

        Args:
            names: The table's name, in parts; empty for the whole file.
            known: The keys that it may have.

        Raises:
            InvalidConfigFile: A key is unknown. The message names similar ones.
        """
        known = set(known)
        for key in self.table(names):
            if key not in known:
                where = f"[{'.'.join(names)}] has no option {key!r}" if names else f"lmwire has no command {key!r}"
                raise InvalidConfigFile(f"{self.path}: {where}{suggestion(key, known)}")


def config_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the config file, whether or not it exists. It never depends on the working directory.

    Args:
        environment: The environment variables.

    Raises:
        InvalidConfigFile: $LMWIRE_CONFIG is relative.
    """
    if named := environment.get(VARIABLE, ""):
        if not Path(named).is_absolute():
            raise InvalidConfigFile(f"${VARIABLE} is {named!r}: write an absolute path")
        return Path(named)
    # The XDG Base Directory Specification says to ignore a relative path.
    # https://specifications.freedesktop.org/basedir-spec/latest/
    base = Path(environment.get("XDG_CONFIG_HOME", ""))
    home = Path(environment.get("HOME", ""))
    if not base.is_absolute():
        base = (home if home.is_absolute() else Path(os.path.expanduser("~"))) / ".config"
        if not base.is_absolute():
            return Path(os.devnull)  # a user without a home, as containers have them
    return base / "lmwire" / "config.toml"


def read_config_file(environment: Mapping[str, str]) -> ConfigFile:
    """Return the config file. Without one it has no tables, unless $LMWIRE_CONFIG names it.

    Args:
        environment: The environment variables.

    Raises:
        InvalidConfigFile: It cannot be read, is not TOML, or others can change it.
    """
    path = config_path(environment)
    if str(path) == os.devnull:
        return ConfigFile(path, {})
    try:
        text, mode = _read(path)
    except FileNotFoundError as error:
        if environment.get(VARIABLE):
            raise InvalidConfigFile(f"${VARIABLE}: {path} does not exist") from error
        return ConfigFile(path, {})
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfigFile(f"{path}: cannot be read: {error}") from error
    return ConfigFile(path, _parse(path, text), bool(mode & _READABLE_BY_OTHERS))


def _read(path: Path) -> tuple[str, int]:
    """Return the text and the mode of a file that only this user and root can change."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidConfigFile(f"{path}: is not a regular file")
        _check_writers(path, status)
        if status.st_size > _MAX_BYTES:
            raise InvalidConfigFile(f"{path}: is longer than {_MAX_BYTES:,} bytes")
        return file.read(_MAX_BYTES).decode(), status.st_mode


def _check_writers(path: Path, status: os.stat_result) -> None:
    """Refuse a file that other users can change: its options name programs that run, such as --worker."""
    if status.st_uid not in (os.geteuid(), 0):
        raise InvalidConfigFile(f"{path}: belongs to another user: copy it, or name another file with ${VARIABLE}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise InvalidConfigFile(f"{path}: other users can change it: chmod go-w {path}")
    folder = path.parent.stat()
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        raise InvalidConfigFile(f"{path}: other users can replace it: chmod o-w {path.parent}")


def _parse(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # only commands that have a file need it

    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidConfigFile(f"{path}: is not valid TOML: {error}") from error
    return tables
