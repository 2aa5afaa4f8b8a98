"""What a conversation is made of in OpenAI's responses: what goes in and what comes out are the same kinds of items.

Ids and statuses that a client sends are taken and not used.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ...errors import invalid_field
from ...http.decoding import convert
from ..ids import new_id
from ..logprobs import TokenLogprob

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class _Part(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    """A piece of a content."""


class InputText(_Part, tag="input_text", kw_only=True, omit_defaults=True):
    """Text of who asks."""

    text: str
    prompt_cache_breakpoint: dict[str, Any] | None = None
    """Harmless: what is alike at the beginning of prompts is cached without it."""


class InputImage(_Part, tag="input_image", kw_only=True, omit_defaults=True):
    """An image."""

    image_url: str | None = None
    """A data URI, an http or https address, which needs `--media-urls`, or a file's path or URL: `--media-dir`."""
    detail: str | None = None
    """Harmless: the model sees the image in its own resolution."""
    file_id: str | None = None
    """Refused."""
    prompt_cache_breakpoint: dict[str, Any] | None = None
    """Harmless, as above."""


class InputFile(_Part, tag="input_file", forbid_unknown_fields=False):
    """A file; refused."""


class OutputText(_Part, tag="output_text", kw_only=True):
    """Text of the model."""

    text: str
    annotations: list[Any] = []
    """Harmless: where a text that was searched for came from. There are none of this server's."""
    logprobs: list[TokenLogprob] | None = None


class Refusal(_Part, tag="refusal", kw_only=True):
    """What another model said when it refused; text to this one."""

    refusal: str


class ReasoningText(_Part, tag="reasoning_text", kw_only=True):
    """A thought."""

    text: str


class SummaryText(_Part, tag="summary_text", kw_only=True):
    """What another service tells of a thought."""

    text: str


MessagePart: TypeAlias = InputText | InputImage | InputFile | OutputText | Refusal


class Item(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    """What all items share."""

    id: str | None = None
    status: Status | None = None


class Message(Item, tag="message", kw_only=True):
    """What somebody says."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[MessagePart]
    phase: Literal["commentary", "final_answer"] | None = None
    """Harmless."""


class FunctionCall(Item, tag="function_call", kw_only=True):
    """A call of a function."""

    call_id: str
    name: str
    arguments: str
    """A JSON object's text; of a call that is cut off, whose status is `incomplete`, the beginning of one."""
    caller: Any = None
    """Harmless."""
    namespace: None = None


class FunctionCallOutput(Item, tag="function_call_output", kw_only=True):
    """What a call came to."""

    call_id: str
    output: str | list[InputText | InputImage | InputFile]
    name: str | None = None
    """Harmless: the call has it."""
    caller: Any = None
    """Harmless."""
    namespace: None = None


class Reasoning(Item, tag="reasoning", kw_only=True):
    """What the model thought."""

    summary: list[SummaryText] = []
    """Told to the model where there is no content. There are none of this server's."""
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None
    """Harmless: only the service that wrote it can read it."""


class ItemReference(Item, tag="item_reference", kw_only=True):
    """An item of an earlier response, by its id."""


InputItem: TypeAlias = Message | FunctionCall | FunctionCallOutput | Reasoning
OutputItem: TypeAlias = Reasoning | Message | FunctionCall


class _InputField(Struct):
    """The part of a body that has items, so that an error names it."""

    input: list[InputItem | ItemReference]


def read_items(input: str | list[dict[str, Any]]) -> Sequence[InputItem | ItemReference]:
    """The items that a request gives.

    Raises:
        ApiError: they are none.
    """
    if isinstance(input, str):
        return [Message(role="user", content=input)]
    if not input:
        raise invalid_field("input: is an empty list; give a text, or items", "input")
    return convert({"input": [{"type": _default_type(item), **item} for item in input]}, _InputField).input


def _default_type(item: dict[str, Any]) -> str:
    """That of an item which does not say."""
    return "message" if "role" in item or "content" in item else "item_reference"


def assign_ids(items: Iterable[InputItem]) -> None:
    """Gives ids to those that have none."""
    for item in items:
        item.id = item.id or item_id("msg" if isinstance(item, Message) else "item")


def item_id(kind: str) -> str:
    """A new id, as `msg_…`."""
    return new_id(kind).replace("-", "_")
