"""Items that the model reads as others: OpenAI's shell and patch tools as functions, agents' messages as the user's."""

from typing import Any, Final, NamedTuple, cast

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


def translate_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item that the model reads in place of one. Items of most types are returned unchanged.

    Args:
        item: An item, as decoded JSON.
    """
    kind = item.get("type")
    if not isinstance(kind, str):
        return item
    if tool := _CALLS.get(kind):
        arguments = _as_text(item.get(tool.action) or {})
        return {"type": "function_call", "call_id": _call_id(item), "name": tool.function, "arguments": arguments}
    if kind in _OUTPUTS:
        output = _as_text(item.get("output") or "")
        return {"type": "function_call_output", "call_id": _call_id(item), "output": output}
    if kind == "agent_message":
        return {"type": "message", "role": "user", "content": _readable_content(item.get("content"))}
    return item


def _call_id(item: dict[str, Any]) -> Any:
    return item.get("call_id") or item.get("id")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _readable_content(content: Any) -> Any:
    """Return the content of an agent's message with its encrypted parts as texts.

    They repeat arguments of a call that the service was asked to encrypt. This server does not, so they are text.
    """
    if not isinstance(content, list):
        return content
    return [_readable_part(part) for part in cast(list[Any], content)]


def _readable_part(part: Any) -> Any:
    match part:
        case {"type": "encrypted_content", "encrypted_content": text}:
            return {"type": "input_text", "text": text}
        case _:
            return part
