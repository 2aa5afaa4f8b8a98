"""The formats of structured output, which are enforced token by token."""

from typing import Annotated

from msgspec import Meta, Struct

from .limits import CHOICES
from .messages import JsonObject


class JsonObjectFormat(Struct, tag_field="type", tag="json_object", forbid_unknown_fields=True, frozen=True):
    """Any JSON object."""


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema", forbid_unknown_fields=True, frozen=True):
    """JSON that is valid under a schema, without spaces and line breaks between its parts."""

    schema: JsonObject
    """A JSON Schema."""


class RegexFormat(Struct, tag_field="type", tag="regex", forbid_unknown_fields=True, frozen=True):
    """Text that a regular expression matches as a whole."""

    pattern: Annotated[str, Meta(min_length=1)]
    """A pattern in the syntax of Rust's regex crate, without anchors, which are implied."""


class LarkFormat(Struct, tag_field="type", tag="lark", forbid_unknown_fields=True, frozen=True):
    """Text of a context-free grammar."""

    grammar: Annotated[str, Meta(min_length=1)]
    """A grammar in llguidance's variant of Lark's syntax."""


class ChoiceFormat(Struct, tag_field="type", tag="choice", forbid_unknown_fields=True, frozen=True):
    """One of several texts."""

    choices: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=CHOICES)]
    """The texts."""


Format = JsonObjectFormat | JsonSchemaFormat | RegexFormat | LarkFormat | ChoiceFormat
