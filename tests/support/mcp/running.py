"""The test servers as configs, and over HTTP."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lmwire.mcp import McpServerConfig
from support.http.ports import unused_port

_FOLDER = Path(__file__).parent
_ENVIRONMENT = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}


def tool_server() -> McpServerConfig:
    """Return the config of the server with a few tools, over its pipes."""
    return McpServerConfig(
        name="tools", command=sys.executable, args=(str(_FOLDER / "tool_server.py"),), env=_ENVIRONMENT
    )


def hostile_server(kind: str, started: Path, name: str = "hostile", **env: str) -> McpServerConfig:
    """Return the config of a server that behaves in a way, and writes to a file that it has started."""
    return McpServerConfig(
        name=name, command=sys.executable, args=(str(_FOLDER / "hostile_server.py"), kind, str(started)), env=env
    )


def config_file(folder: Path, *servers: McpServerConfig) -> Path:
    """Write a config file with these servers, and return its path."""
    entries: dict[str, Any] = {each.name: msgspec.to_builtins(each) for each in servers}
    given = {name: {key: value for key, value in entry.items() if value} for name, entry in entries.items()}
    file = folder / "mcp.json"
    file.write_bytes(msgspec.json.encode({"mcpServers": given}))
    file.chmod(0o600)
    return file


@contextmanager
def http_tool_server() -> Iterator[str]:
    """Run the server with a few tools over HTTP, and yield its URL."""
    port = unused_port()
    command = [sys.executable, str(_FOLDER / "tool_server.py"), "--http", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()
