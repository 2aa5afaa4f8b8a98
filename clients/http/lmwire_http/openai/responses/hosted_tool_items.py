"""Items of OpenAI's shell and patch tools in a conversation. The model reads them as calls of functions."""

from typing import Any, Final, NamedTuple

import msgspec


class _HostedTool(NamedTuple):
    function: str
    action: str
    """The field of a call with its arguments."""


_TOOLS: Final = {
    "local_shell": _HostedTool("local_shell", "action"),
    "shell": _HostedTool("shell", "action"),
    "apply_patch": _HostedTool("apply_patch", "operation"),
}
_CALLS: Final = {f"{kind}_call": tool for kind, tool in _TOOLS.items()}
_OUTPUTS: Final = {f"{kind}_call_output" for kind in _TOOLS}


def as_function_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call of such a tool, or its result, as an item of a function. Other items are returned unchanged."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return item
    if tool := _CALLS.get(kind):
        arguments = _as_text(item.get(tool.action) or {})
        return {"type": "function_call", "call_id": _call_id(item), "name": tool.function, "arguments": arguments}
    if kind in _OUTPUTS:
        output = _as_text(item.get("output") or "")
        return {"type": "function_call_output", "call_id": _call_id(item), "output": output}
    return item


def _call_id(item: dict[str, Any]) -> Any:
    return item.get("call_id") or item.get("id")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
