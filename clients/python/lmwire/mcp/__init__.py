"""Tools of MCP servers: the servers of a config file, their tools, and calls of these.

The Model Context Protocol (https://modelcontextprotocol.io) lets a program offer tools to a model's host. Each server's
connection is a process of its own, which alone imports the package `mcp`. So what a server sends is read under limits,
and a process that exceeds them ends without harm to anything else.
"""

from .config import InvalidMcpConfig, McpServerConfig, read_mcp_config
from .connection import McpCallFailed
from .messages import McpResult, McpTool
from .servers import McpServers, McpServerStatus

__all__ = [
    "InvalidMcpConfig",
    "McpCallFailed",
    "McpResult",
    "McpServerConfig",
    "McpServerStatus",
    "McpServers",
    "McpTool",
    "read_mcp_config",
]
