"""GET /v1/mcp/tools and POST /v1/mcp/call: tools of the MCP servers that the operator has configured.

A client, such as the chat page, offers the tools to a model and calls them itself: the server never runs a tool because
a model wants it.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from lmwire.mcp import McpCallFailed, McpResult, McpServers, McpServerStatus

from .errors import ApiError
from .http.context import RequestContext
from .http.endpoint import Endpoint, Json, Reply, endpoint
from .limits import JsonObject


class ToolList(Struct, kw_only=True):
    """The MCP servers and their tools."""

    servers: list[McpServerStatus]


class CallRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A tool to call."""

    name: str
    """The name that /v1/mcp/tools has: `SERVER__TOOL`."""
    arguments: JsonObject = {}


@endpoint("GET", "/v1/mcp/tools", response_type=ToolList)
async def list_tools(context: RequestContext, _: None) -> Reply:
    """List the MCP servers and their tools."""
    servers = context.state.mcp_servers
    return Json(ToolList(servers=servers.statuses() if servers else []))


@endpoint("POST", "/v1/mcp/call", response_type=McpResult, error_statuses=(404, 502))
async def call_tool(context: RequestContext, body: CallRequest) -> Reply:
    """Call a tool of an MCP server. The call ends if the client disconnects."""
    try:
        return Json(await _servers(context).call(body.name, body.arguments))
    except KeyError:
        problem = "name: no MCP server has this tool; GET /v1/mcp/tools lists them"
        raise ApiError(404, problem, code="tool_not_found", param="name") from None
    except McpCallFailed as error:
        raise ApiError(502, str(error), code="tool_failed") from error


def _servers(context: RequestContext) -> McpServers:
    if servers := context.state.mcp_servers:
        return servers
    raise ApiError(404, "this server has no MCP servers; start it with --mcp-config FILE", code="tool_not_found")


ENDPOINTS: Final[Sequence[Endpoint]] = (list_tools, call_tool)
