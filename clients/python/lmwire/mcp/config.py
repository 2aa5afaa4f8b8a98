"""The config file of MCP servers, in the form that other hosts of MCP read: `{"mcpServers": {"NAME": {…}}}`."""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from lmwire_protocol.extras import not_installed

MAX_SERVERS: Final = 32
_MAX_FILE_BYTES: Final = 1024 * 1024
_NAME: Final = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_MAX_NAME: Final = 32
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_HTTP_TYPES: Final = ("http", "streamable-http", "streamableHttp")


class InvalidMcpConfig(ValueError):
    """A config file that cannot be used. The message names the field, and repeats no value: it may be a secret."""


class McpServerConfig(Struct, frozen=True, kw_only=True):
    """A server to connect to: a program that speaks over its pipes (`command`), or one over HTTP (`url`)."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Environment variables of the program, besides a few such as PATH and HOME."""
    cwd: str = ""
    """Working directory of the program; that of this process if empty."""
    url: str = ""
    headers: dict[str, str] = {}
    """HTTP headers of each request, such as `Authorization`."""


class _Server(Struct, kw_only=True):
    """A server as the file has it. Fields of other programs are ignored."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    type: Literal["", "stdio", "http", "streamable-http", "streamableHttp", "sse"] = ""
    disabled: bool = False


class _File(Struct, rename={"servers": "mcpServers"}):
    servers: dict[str, Any]


def read_mcp_config(path: Path, environment: Mapping[str, str] = os.environ) -> tuple[McpServerConfig, ...]:
    """Return the servers of a config file, without those that are `disabled`.

    `${NAME}` in a value of a server stands for an environment variable, so that a file needs no secrets.

    Args:
        path: The file.
        environment: The environment variables.

    Raises:
        InvalidMcpConfig: The file cannot be used, or the package `mcp` is not installed.
    """
    if not find_spec("mcp"):
        raise InvalidMcpConfig(not_installed("mcp", "mcp"))
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidMcpConfig(f"cannot read {path}: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise InvalidMcpConfig(f"{path} is larger than 1 MiB")
    try:
        servers = msgspec.json.decode(content, type=_File).servers
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidMcpConfig(f'{path} is not JSON such as {{"mcpServers": {{…}}}}: {error}') from error
    if len(servers) > MAX_SERVERS:
        raise InvalidMcpConfig(f"mcpServers: {path} has more than {MAX_SERVERS} servers, the limit")
    read = (_read_server(name, value, environment) for name, value in servers.items())
    return tuple(server for server in read if server)


def _read_server(name: str, value: Any, environment: Mapping[str, str]) -> McpServerConfig | None:
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidMcpConfig(
            f"mcpServers: {name[:_MAX_NAME]!r} cannot be a server's name: use up to {_MAX_NAME} letters, digits, "
            "dashes and single underscores"
        )
    try:
        given = msgspec.convert(value, _Server)
    except msgspec.ValidationError as error:
        raise InvalidMcpConfig(f"mcpServers.{name}: {error}") from error
    if given.disabled:
        return None

    def expand(text: str) -> str:
        def value_of(found: re.Match[str]) -> str:
            if found[1] not in environment:
                raise InvalidMcpConfig(f"mcpServers.{name}: the environment variable {found[1]} is not set")
            return environment[found[1]]

        return _VARIABLE.sub(value_of, text)

    _check_transport(name, given)
    return McpServerConfig(
        name=name,
        command=expand(given.command),
        args=tuple(map(expand, given.args)),
        env={key: expand(each) for key, each in given.env.items()},
        cwd=os.path.expanduser(expand(given.cwd)),
        url=_checked_url(name, expand(given.url)),
        headers={key: expand(each) for key, each in given.headers.items()},
    )


def _check_transport(name: str, given: _Server) -> None:
    if given.type == "sse":
        raise InvalidMcpConfig(f"mcpServers.{name}.type: SSE has been replaced by HTTP: give the server's URL for that")
    if bool(given.command) == bool(given.url):
        raise InvalidMcpConfig(f"mcpServers.{name}: give `command` for a program, or `url` for a server over HTTP")
    if (given.type in _HTTP_TYPES and not given.url) or (given.type == "stdio" and not given.command):
        raise InvalidMcpConfig(f"mcpServers.{name}.type: {given.type} does not fit the other fields")


def _checked_url(name: str, url: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable = not url or (parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidMcpConfig(f"mcpServers.{name}.url: it must begin with http:// or https:// and name a host")
    return url
