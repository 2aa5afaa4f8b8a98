"""An MCP server with a few tools, written with the server's side of the official package.

As a program it speaks over its pipes, or with `--http PORT` over HTTP at /mcp. Its start takes a second of processor
time: most tests need only what hostile_server.py does.
"""

import asyncio
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tools for tests")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def fail(reason: str) -> str:
    """Fail for a reason."""
    raise ToolError(reason)


@server.tool()
async def wait(file: str) -> str:
    """Write `started` to a file, and wait until the call is cancelled, which the file then says."""
    try:
        with open(file, "w") as started:
            started.write("started")
        await asyncio.Event().wait()
    finally:
        with open(file, "w") as ended:
            ended.write("cancelled")
    return ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
