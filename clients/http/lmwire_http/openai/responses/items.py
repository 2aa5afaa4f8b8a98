"""Items of a conversation in OpenAI's responses. Input and output have the same kinds of items.

Ids and statuses in requests are accepted and ignored.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec
from msgspec import Struct

from ...errors import invalid_field
from ...http.decoding import convert
from ...http.unknown_fields import UnknownFields
from ...inference.answers import TokenLogprob
from ...limits import JsonObject, Logprobs, Messages, Parts, Tools
from ..response_fields import new_id
from .tools import Tool, served_tools

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]
_CONTENT: Final = frozenset({"content", "output", "encrypted_content"})
"""Fields of items that the model must read."""


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


class _Part(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    """A part of an item's content."""


class InputText(_Part, tag="input_text", kw_only=True, omit_defaults=True):
    """Text of the user."""

    text: str
    prompt_cache_breakpoint: JsonObject | None = None
    """Ignored: shared prefixes are always cached."""


class InputImage(_Part, tag="input_image", kw_only=True, omit_defaults=True):
    """An image."""

    image_url: str | None = None
    """A data URI, an http or https URL (needs `--media-urls`), or a file's path or URL (needs `--media-dir`)."""
    detail: str | None = None
    """Ignored: the model sees the image at its own resolution."""
    file_id: str | None = None
    """Not supported."""
    prompt_cache_breakpoint: JsonObject | None = None
    """Ignored, as in `InputText`."""


class InputFile(_Part, tag="input_file", forbid_unknown_fields=False):
    """A file. Not supported."""


class OutputText(_Part, tag="output_text", kw_only=True):
    """Text of the model."""

    text: str
    annotations: Parts[Any] = []
    """Ignored in requests: sources of text from a search. Responses have none."""
    logprobs: Logprobs[TokenLogprob] | None = None


class Refusal(_Part, tag="refusal", kw_only=True):
    """A refusal of another model. This model reads it as text."""

    refusal: str


class ReasoningText(_Part, tag="reasoning_text", kw_only=True):
    """A part of the reasoning."""

    text: str


class SummaryText(_Part, tag="summary_text", kw_only=True):
    """A summary of reasoning by another service."""

    text: str


MessagePart: TypeAlias = InputText | InputImage | InputFile | OutputText | Refusal


class Item(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    """Fields of all items."""

    id: str | None = None
    status: Status | None = None


class Message(Item, tag="message", kw_only=True):
    """A message."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | Parts[MessagePart]
    phase: Literal["commentary", "final_answer"] | None = None
    """Ignored."""


class FunctionCall(Item, tag="function_call", kw_only=True):
    """A call of a function."""

    call_id: str
    name: str
    arguments: str
    """JSON text of an object. Requests may have the object itself.

    In a call that was cut off, with the status `incomplete`, it is only the start of one.
    """
    caller: Any = None
    """Ignored."""
    namespace: str | None = None
    """The namespace of the function; null without one."""


class CustomToolCall(Item, tag="custom_tool_call", kw_only=True):
    """A call of a custom tool."""

    call_id: str
    name: str
    input: str
    """Any text. In a call that was cut off, with the status `incomplete`, it is the start of a JSON object."""
    caller: Any = None
    """Ignored."""
    namespace: str | None = None


class FunctionCallOutput(Item, tag="function_call_output", kw_only=True):
    """The result of a function call."""

    call_id: str
    output: str | Parts[InputText | InputImage | InputFile]
    name: str | None = None
    """Ignored, as are the next two fields: the call has them."""
    caller: Any = None
    namespace: str | None = None


class CustomToolCallOutput(Item, tag="custom_tool_call_output", kw_only=True):
    """The result of a call of a custom tool."""

    call_id: str
    output: str | Parts[InputText | InputImage | InputFile]
    name: str | None = None
    """Ignored, as are the next two fields: the call has them."""
    caller: Any = None
    namespace: str | None = None


class Reasoning(Item, tag="reasoning", kw_only=True):
    """The model's reasoning."""

    summary: Parts[SummaryText] = []
    """Takes the place of absent content. Responses have none."""
    content: Parts[ReasoningText] | None = None
    encrypted_content: str | None = None
    """Ignored: only the service that wrote it can read it."""


class AdditionalTools(Item, tag="additional_tools", kw_only=True):
    """Tools that are offered in addition to those of the request."""

    role: Literal["user", "assistant", "system", "developer"] | None = None
    """Ignored."""
    tools: Tools[Tool | None]
    """Null is a tool that is left out."""


class ItemReference(Item, tag="item_reference", kw_only=True):
    """A reference to an item of a stored response, by its id."""


Call: TypeAlias = FunctionCall | CustomToolCall
InputItem: TypeAlias = Message | Call | FunctionCallOutput | CustomToolCallOutput | Reasoning | AdditionalTools
OutputItem: TypeAlias = Reasoning | Message | Call


class InputField(Struct):
    """The part of a body with the items, so that errors name the field."""

    input: Messages[InputItem | ItemReference | None]


_TYPES: Final = frozenset(str(kind.__struct_config__.tag) for kind in get_args(InputItem | ItemReference))


def read_items(input: str | list[dict[str, Any]], unknown: UnknownFields) -> Sequence[InputItem | ItemReference | None]:
    """Return the items of a request. None takes the place of those that are left out.

    Args:
        input: The text or items.
        unknown: Collects unknown fields and the items that are left out.

    Raises:
        ApiError: The items are invalid, or one must not be left out.
    """
    if isinstance(input, str):
        return [Message(role="user", content=input)]
    if not input:
        raise invalid_field("input: is an empty list; give a text, or items", "input")
    served = [_served(translate_item(item), f"input[{place}]", unknown) for place, item in enumerate(input)]
    return convert({"input": served}, InputField, unknown).input


def has_references(input: str | list[dict[str, Any]]) -> bool:
    """Return whether a request's items refer to stored ones."""
    return not isinstance(input, str) and any(
        item.get("type", _default_type(item)) == "item_reference" for item in input
    )


def _served(item: dict[str, Any], path: str, unknown: UnknownFields) -> dict[str, Any] | None:
    """Return an item with its type, and with arguments as text; None for one that is left out.

    A call of a tool that OpenAI's service ran, such as a web search, does not contain the result: the message after it
    does. An item of an unknown type that contains one is not left out, since the model needs to read it.
    """
    item = {"type": _default_type(item), **item}
    kind = item["type"]
    if isinstance(kind, str) and kind not in _TYPES:
        if not _CONTENT.isdisjoint(item):
            problem = (
                f"the model cannot read items of the type {kind!r}, and this one has content; send it as a message"
            )
            raise invalid_field(f"{path}.type: {problem}", f"{path}.type")
        unknown.leave_out(path, kind)
        return None
    if kind == "additional_tools" and isinstance(tools := item.get("tools"), list):
        item["tools"] = served_tools(cast(list[Any], tools), f"{path}.tools", unknown)
    if isinstance(item.get("arguments"), dict):
        item["arguments"] = msgspec.json.encode(item["arguments"]).decode()
    return item


def _default_type(item: dict[str, Any]) -> str:
    """Return the type of an item without one."""
    return "message" if "role" in item or "content" in item else "item_reference"


def assign_ids(items: Iterable[InputItem]) -> list[InputItem]:
    """Give an id to each item without one, and return those items."""
    assigned = [item for item in items if not item.id]
    for item in assigned:
        item.id = item_id("msg" if isinstance(item, Message) else "item")
    return assigned


def item_id(kind: str) -> str:
    """Return a new id, such as `msg_…` for the kind `msg`."""
    return new_id(kind).replace("-", "_")
