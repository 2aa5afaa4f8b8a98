"""Items of a conversation in OpenAI's responses. Input and output have the same kinds of items.

Ids and statuses in requests are accepted and ignored.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ...errors import invalid_field
from ...http.decoding import convert
from ...http.unknown_fields import UnknownFields
from ...inference.logprobs import TokenLogprob
from ..ids import new_id

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class _Part(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    """A part of an item's content."""


class InputText(_Part, tag="input_text", kw_only=True, omit_defaults=True):
    """Text of the user."""

    text: str
    prompt_cache_breakpoint: dict[str, Any] | None = None
    """Ignored: shared prefixes are always cached."""


class InputImage(_Part, tag="input_image", kw_only=True, omit_defaults=True):
    """An image."""

    image_url: str | None = None
    """A data URI, an http or https URL (needs `--media-urls`), or a file's path or URL (needs `--media-dir`)."""
    detail: str | None = None
    """Ignored: the model sees the image at its own resolution."""
    file_id: str | None = None
    """Not supported."""
    prompt_cache_breakpoint: dict[str, Any] | None = None
    """Ignored, as in `InputText`."""


class InputFile(_Part, tag="input_file", forbid_unknown_fields=False):
    """A file. Not supported."""


class OutputText(_Part, tag="output_text", kw_only=True):
    """Text of the model."""

    text: str
    annotations: list[Any] = []
    """Ignored in requests: sources of text from a search. Responses have none."""
    logprobs: list[TokenLogprob] | None = None


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
    content: str | list[MessagePart]
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
    namespace: None = None


class FunctionCallOutput(Item, tag="function_call_output", kw_only=True):
    """The result of a function call."""

    call_id: str
    output: str | list[InputText | InputImage | InputFile]
    name: str | None = None
    """Ignored: the call has the name."""
    caller: Any = None
    """Ignored."""
    namespace: None = None


class Reasoning(Item, tag="reasoning", kw_only=True):
    """The model's reasoning."""

    summary: list[SummaryText] = []
    """Takes the place of absent content. Responses have none."""
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None
    """Ignored: only the service that wrote it can read it."""


class ItemReference(Item, tag="item_reference", kw_only=True):
    """A reference to an item of a stored response, by its id."""


InputItem: TypeAlias = Message | FunctionCall | FunctionCallOutput | Reasoning
OutputItem: TypeAlias = Reasoning | Message | FunctionCall


class _InputField(Struct):
    """The part of a body with the items, so that errors name the field."""

    input: list[InputItem | ItemReference]


def read_items(input: str | list[dict[str, Any]], unknown: UnknownFields) -> Sequence[InputItem | ItemReference]:
    """Return the items of a request.

    Args:
        input: The text or items.
        unknown: Collects unknown fields.

    Raises:
        ApiError: The items are invalid.
    """
    if isinstance(input, str):
        return [Message(role="user", content=input)]
    if not input:
        raise invalid_field("input: is an empty list; give a text, or items", "input")
    return convert({"input": [_with_defaults(item) for item in input]}, _InputField, unknown).input


def _with_defaults(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its type, and with arguments as text."""
    item = {"type": _default_type(item), **item}
    if isinstance(item.get("arguments"), dict):
        item["arguments"] = msgspec.json.encode(item["arguments"]).decode()
    return item


def _default_type(item: dict[str, Any]) -> str:
    """Return the type of an item without one."""
    return "message" if "role" in item or "content" in item else "item_reference"


def assign_ids(items: Iterable[InputItem]) -> None:
    """Give an id to each item without one."""
    for item in items:
        item.id = item.id or item_id("msg" if isinstance(item, Message) else "item")


def item_id(kind: str) -> str:
    """Return a new id, such as `msg_…` for the kind `msg`."""
    return new_id(kind).replace("-", "_")
